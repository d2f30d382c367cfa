"""Configure which event arguments become columns of a trace frame.

``sql/ingest/arguments.csv`` lists the arguments that HTA knows.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any, ClassVar

from hta_sql.hta.configs.default_values import AttributeSpec, ValueType
from hta_sql.library.arguments import HtaColumn, known_arguments

__all__ = ["AVAILABLE_ARGS", "ParserConfig"]

_INPUT_SHAPE = ("cpu_op::input_dims", "cpu_op::input_type", "cpu_op::input_strides")
_DEFAULT = (
    *("cuda::stream", "correlation::cpu_gpu", "data::bytes", "data::bandwidth"),
    *("cuda_sync::stream", "cuda_sync::event", *_INPUT_SHAPE),
    *("index::external_id", "index::python_id", "index::python_parent_id"),
    *("nccl::collective_name", "nccl::in_msg_nelems", "nccl::out_msg_nelems", "nccl::dtype"),
    *("nccl::group_size", "nccl::rank", "nccl::in_split_size", "nccl::out_split_size"),
)


def _spec(name: str, known: HtaColumn) -> AttributeSpec:
    kind = ValueType[known.type]
    default: Any = {ValueType.Int: int, ValueType.Float: float}.get(kind, str)(known.default)
    return AttributeSpec(known.column, name, kind, default)


AVAILABLE_ARGS = {a.hta.key: _spec(a.name, a.hta) for a in known_arguments() if a.hta}
"""HTA's key ─▶ the argument."""


class ParserConfig:
    """Event arguments that become columns of the frames of a :class:`Trace`.

    The columns of HTA's default arguments always exist. The store has every argument of every
    event, regardless of the ParserConfig: the analysis ``event_arguments``.

    Args:
        args: Arguments; default: HTA's.

    Attributes:
        args: Arguments that become columns.
    """

    ARGS_INPUT_SHAPE: ClassVar[list[AttributeSpec]] = [AVAILABLE_ARGS[key] for key in _INPUT_SHAPE]
    ARGS_DEFAULT: ClassVar[list[AttributeSpec]] = [AVAILABLE_ARGS[key] for key in _DEFAULT]

    _default: ClassVar[ParserConfig | None] = None

    def __init__(self, args: list[AttributeSpec] | None = None) -> None:
        self.args = list(args or self.ARGS_DEFAULT)

    @classmethod
    def get_default_cfg(cls) -> ParserConfig:
        """Return a copy of the configuration that traces use by default."""
        return copy.deepcopy(cls._default or ParserConfig())

    @classmethod
    def set_default_cfg(cls, cfg: ParserConfig) -> None:
        """Set the configuration that traces use by default."""
        ParserConfig._default = copy.deepcopy(cfg)

    def add_args(self, args: Iterable[AttributeSpec]) -> None:
        """Add the arguments whose columns do not exist yet."""
        known = {spec.name for spec in self.args}
        for spec in args:
            if spec.name not in known:
                known.add(spec.name)
                self.args.append(spec)
