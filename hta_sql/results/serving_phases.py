"""Formats sentences about a phase of a serving engine, a row of the analysis ``serving``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from hta_sql.text import time_text

Row = dict[str, Any]

KINDS = 3
"""Maximum number of kinds of work that a sentence names in addition to the largest."""

LEAST_PCT = 1
"""Minimum share of a kind of work that a sentence names [%]."""


def phase_title(row: Row) -> str:
    """Return the name of an iteration of the phase, as the subject of a sentence."""
    if row["phase"] == "decode":
        return "A decode"
    return f"A {row['phase']} iteration" if row["phase"] else "An iteration"


def token_rates(row: Row) -> Iterator[tuple[str, str]]:
    """Yield (rate, unit) of processed and generated tokens, if the annotations count them."""
    if row["input_tokens_per_s"] is not None:
        yield f"{row['input_tokens_per_s']:,.0f}", "tokens/s processed"
    low, high = row["min_output_tokens_per_s"], row["max_output_tokens_per_s"]
    if low is not None and high is not None:
        rate = f"{low:,.0f}" if low == high else f"{low:,.0f} to {high:,.0f}"
        yield rate, "tokens/s out"


def pace_sentence(row: Row) -> str:
    """Return the median time of an iteration and the device's busy share, as a sentence."""
    if row["iteration_p50_ns"] is None:
        return f"{phase_title(row)} has no device operation in the trace"
    per_token = ", the time per output token" if row["phase"] == "decode" else ""
    time = f"{time_text(row['iteration_p50_ns'])}{per_token}"
    return f"{phase_title(row)} takes {time}; GPU busy {row['busy_pct']:.1f} %"


def work_sentence(row: Row) -> str:
    """Return the annotated requests per iteration and token rates, or an empty string."""
    said = [f"{rate} {unit}" for rate, unit in token_rates(row)]
    if row["mean_request_count"] is not None:
        said.insert(0, f"{row['mean_request_count']:,.1f} requests")
    return f"; {', '.join(said)}" if said else ""


def work_shares(row: Row, kinds: Sequence[Row]) -> dict[str, float]:
    """Return the share of the iteration time of a phase by kind of work [%], in the order of kinds.

    Concurrent operations both count. Iteration time includes the gaps between iterations.
    """
    whole = (row["device_ns"] or 0) + (row["gap_ns"] or 0)
    return {kind["category"]: 100 * kind["total_ns"] / whole for kind in kinds} if whole else {}


def bound_sentence(row: Row, kinds: Sequence[Row]) -> str:
    """Return a sentence about the largest share of iteration time: idle time or a kind of work.

    Args:
        row: The phase.
        kinds: Rows of ``serving_kinds`` for the phase.
    """
    whole = (row["device_ns"] or 0) + (row["gap_ns"] or 0)
    if not whole:
        return ""
    shares = work_shares(row, kinds)
    shares["between"] = 100 * (row["gap_ns"] or 0) / whole
    shares["inside"] = 100 * (row["device_ns"] - row["busy_ns"]) / whole
    first, *rest = sorted(shares, key=lambda name: (-shares[name], name))
    idle = {"between": "idle between iterations", "inside": "idle inside of iterations"}
    causes = {
        "between": "Host-bound: the GPU idles between iterations",
        "inside": "Launch-bound: the GPU idles inside of iterations",
        "communication": "Bound by communication",
    }
    cause = causes.get(first, f"Bound by {first} kernels")
    also = [
        f"{idle.get(name, name)} {shares[name]:.0f} %"
        for name in rest[:KINDS]
        if shares[name] >= LEAST_PCT
    ]
    return (
        f"{cause}, {shares[first]:.0f} % of the time{'; then ' if also else ''}{', '.join(also)}."
    )


def roof_sentence(row: Row, store: str = "STORE") -> str:
    """Return a sentence about an iteration's roofline time, or the reason why it is unknown.

    Args:
        row: The row of ``serving_roofline`` for complete iterations of a phase.
        store: Name of the store in the command that takes the peaks of the device.
    """
    if row["max_roofline_ns"] is None and row["max_moved_bytes"]:
        return (
            f"Known work of an iteration: {row['max_flops'] / 1e12:,.3f} TFLOP and {row['max_moved_bytes'] / 1e9:,.3f} GB. "
            f"Time at the roofline unknown: {row['reason']}. With the peaks of the device: "
            f"hta-sql run {store} serving_roofline --custom-peak-tflops TFLOPS --custom-peak-tbps TBPS"
        )
    if row["max_roofline_ns"] is None:
        return f"Time at the roofline unknown: {row['reason']}." if row["reason"] else ""
    what = "per token" if row["phase"] == "decode" else "per iteration"
    most = "" if row["roofline_ns"] is not None else "at most "
    taken = row["device_ns"] * row["covered_pct"] / 100
    rest = (
        f" The work of the other {100 - row['covered_pct']:.0f} % is unknown."
        if row["covered_pct"] < 100 - LEAST_PCT
        else ""
    )
    return (
        f"Kernels with known work ({row['covered_pct']:.0f} % of kernel time) take {time_text(taken)} {what}; at the "
        f"roofline {most}{time_text(row['max_roofline_ns'])}, of which memory {time_text(row['max_memory_ns'])}.{rest}"
    )
