"""The argument positions in the operator models agree with the signatures of the operators."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

import duckdb
import pytest

from hta_sql.library.objects import load_library

MACROS = ("_operator_models",)
"""Macros under test."""

SIGNATURES = {
    "flash_attn::_flash_attn_forward": (
        "q k v dropout_p softmax_scale causal window_size_left window_size_right"
    ),
    "flash_attn::_flash_attn_backward": (
        "dout q k v out softmax_lse dq dk dv dropout_p softmax_scale causal window_size_left "
        "window_size_right"
    ),
    "flash_attn_3::fwd": (
        "q k v k_new v_new q_v out cu_seqlens_q cu_seqlens_k cu_seqlens_k_new seqused_q seqused_k "
        "max_seqlen_q max_seqlen_k page_table kv_batch_idx leftpad_k rotary_cos rotary_sin "
        "seqlens_rotary q_descale k_descale v_descale softmax_scale is_causal window_size_left "
        "window_size_right"
    ),
    "flash_attn_3::bwd": (
        "dout q k v out softmax_lse dq dk dv cu_seqlens_q cu_seqlens_k seqused_q seqused_k "
        "max_seqlen_q max_seqlen_k softmax_scale is_causal window_size_left window_size_right"
    ),
    "torch::distributed::reducer::mul_out": "self other",
    "aten::_cumsum": "self dim",
}
"""Arguments of operators that torch does not list, at least up to the last one in use."""

WHAT_IS_READ = {
    "gemm": ("a", "b", "added", "out_dtype", "beta"),
    "grouped": ("a", "b", "offs", "out_dtype"),
    "conv": (
        *("a", "weight", "stride", "padding", "dilation", "bias", "transposed"),
        *("output_padding", "groups"),
    ),
    "conv_backward": ("grad_output", "input", "weight", "transposed", "output_mask"),
    "attention": ("query", "causal", "lengths", "window_size_left", "window_size_right"),
    "softmax": ("a",),
    "norm": ("a",),
    "index": ("a", "indices"),
}
"""Formula ─▶ its required arguments, in order."""

OTHER_NAMES = {
    "query": ("query", "q"),
    "causal": ("is_causal", "causal", "custom_mask_type"),
    "lengths": ("cum_seq_q", "cu_seqlens_q"),
    "indices": ("indices", "index"),
    "window_size_left": ("window_size_left", "window_size"),
}

NUMBERS = {"aten::fill_": 1, "aten::masked_fill": 2, "aten::masked_fill_": 2}
"""Operator ─▶ number of its tensor arguments, except for the last one, which is a single number."""

TWO_INPUTS = {"torch::distributed::reducer::mul_out": 2}


def lines(name: str) -> list[dict[str, str]]:
    """Read a table in this folder."""
    with Path(__file__).with_name(name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


RECORDED = {line["operator"]: line for line in lines("signatures.csv")}
MODELS = {line["operator"]: line for line in lines("models.csv")}


@cache
def connection() -> duckdb.DuckDBPyConnection:
    """Return an engine with the macro and a table of all operator names."""
    con = duckdb.connect(":memory:", config={"threads": 1})
    con.execute("CREATE SCHEMA lib")
    con.execute("CREATE TABLE names AS SELECT unnest(?::VARCHAR[]) AS name", [[*MODELS, "aten::x"]])
    con.execute(next(m.text for m in load_library().macros if m.name == "_operator_models"))
    return con


@cache
def answers() -> list[tuple[str, str, str, list[int], bool]]:
    """Return all rows of the macro."""
    return connection().execute("FROM lib._operator_models('names') ORDER BY name").fetchall()


def expected_places(name: str, model: str, variant: str) -> list[int]:
    """Return the positions of the arguments that a formula needs, with -1 for a missing one."""
    if model == "fused":
        return []
    arguments = SIGNATURES[name] if name in SIGNATURES else RECORDED[name]["arguments"]
    known = {argument: place for place, argument in enumerate(arguments.split())}
    if model == "elementwise":
        counts = {**NUMBERS, **TWO_INPUTS}
        return [counts[name] if name in counts else int(RECORDED[name]["tensor_count"])]
    if model == "reduce":
        return [-1 if variant == "scan" else known.get("dim", 1)]
    # The added tensor precedes the multiplied ones.
    is_added = "mat1" in known or "batch1" in known or "mat" in known
    known |= {"a": int(is_added), "b": 1 + is_added}
    known |= {"added": 0} if is_added else {"added": known["bias"]} if "bias" in known else {}
    if model == "conv" and "transpose" in name.rsplit("_", maxsplit=1)[-1]:
        known["transposed"] = -2  # by its name
    wanted = WHAT_IS_READ[model.removesuffix("_backward") if "attention" in model else model]
    return [
        next((known[n] for n in OTHER_NAMES.get(what, (what,)) if n in known), -1)
        for what in wanted
    ]


@pytest.mark.parametrize("model", sorted({line["model"] for line in MODELS.values()}))
def test_places_are_those_of_the_signature(model: str) -> None:
    """Argument positions agree for each torch operator with a formula, and for flash-attention."""
    found = {name: (variant, places) for name, m, variant, places, _ in answers() if m == model}
    names = {name: line["variant"] for name, line in MODELS.items() if line["model"] == model}
    assert found == {
        name: (variant, expected_places(name, model, variant)) for name, variant in names.items()
    }


def test_an_operator_has_one_formula() -> None:
    """Each operator has one formula, and wrappers are marked as such."""
    found = [(name, model, variant, wraps) for name, model, variant, _, wraps in answers()]
    assert found == [
        (name, line["model"], line["variant"], line["is_wrapper"] == "true")
        for name, line in sorted(MODELS.items())
    ]


def test_every_operator_that_torch_lists_has_one() -> None:
    """Every operator that torch lists for the patterns of record.py has a formula."""
    assert RECORDED.keys() <= MODELS.keys()
