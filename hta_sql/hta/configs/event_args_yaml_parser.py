"""The arguments that trace frames know by a column of HTA's name.

The list is ``sql/readers/trace_frame_arguments.csv``; where HTA has a function for each group of
them, there is one function with its name.
"""

from __future__ import annotations

import csv
from functools import cache
from typing import Any

from hta_sql.hta.configs.default_values import AttributeSpec, EventArgs, ValueType, YamlVersion
from hta_sql.library.files import sql_root

__all__ = ["parse_event_args_yaml", "v1_0_0"]

v1_0_0 = YamlVersion(1, 0, 0)

_GROUPS = {
    "ARGS_INPUT_SHAPE": ("cpu_op::input_dims", "cpu_op::input_type", "cpu_op::input_strides"),
    "ARGS_BANDWIDTH": ("data::bytes", "data::bandwidth"),
    "ARGS_SYNC": ("cuda_sync::stream", "cuda_sync::event"),
    "ARGS_MINIMUM": ("cuda::stream", "correlation::cpu_gpu"),
    "ARGS_INFO": ("info::labels", "info::name", "info::sort_index"),
    "ARGS_COMMUNICATION": (
        *("nccl::collective_name", "nccl::in_msg_nelems", "nccl::out_msg_nelems", "nccl::dtype"),
        *("nccl::group_size", "nccl::rank", "nccl::in_split_size", "nccl::out_split_size"),
    ),
    "ARGS_TRITON_KERNELS": ("cpu_op::kernel_backend", "cpu_op::kernel_hash"),
}
_DEFAULT = ("ARGS_MINIMUM", "ARGS_BANDWIDTH", "ARGS_SYNC", "ARGS_INPUT_SHAPE")


@cache
def parse_event_args_yaml(version: YamlVersion) -> EventArgs:  # noqa: ARG001 - there is one list
    """Return the known arguments and their groups, the same for every version."""
    path = sql_root() / "readers" / "trace_frame_arguments.csv"
    with path.open(encoding="utf-8", newline="") as file:
        known = {row["key"]: _spec(row) for row in csv.DictReader(file)}
    groups = {name: [known[key] for key in keys] for name, keys in _GROUPS.items()}
    return EventArgs(
        AVAILABLE_ARGS=known,
        ARGS_COMPLETE=[spec for key, spec in known.items() if not key.startswith("info")],
        ARGS_DEFAULT=[
            *(spec for name in _DEFAULT for spec in groups[name]),
            known["index::external_id"],
        ],
        **groups,
    )


def _spec(row: dict[str, str]) -> AttributeSpec:
    kind = ValueType[row["type"]]
    default: Any = {ValueType.Int: int, ValueType.Float: float}.get(kind, str)(row["default"])
    since = YamlVersion.from_string(row["since"])
    return AttributeSpec(row["column"], row["argument"], kind, default, since)
