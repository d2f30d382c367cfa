"""Configure which event arguments become columns of a trace frame.

``sql/ingest/arguments.csv`` lists the arguments that HTA knows.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable
from functools import cache
from typing import Any, ClassVar

from hta_sql.errors import ParameterError
from hta_sql.hta.configs.default_values import AttributeSpec, ValueType, YamlVersion
from hta_sql.library.arguments import HtaColumn, known_arguments

__all__ = ["ParserConfig"]

_VERSION = YamlVersion(1, 0, 0)
_MINIMUM = ("cuda::stream", "correlation::cpu_gpu")
_BANDWIDTH = ("data::bytes", "data::bandwidth")
_SYNC = ("cuda_sync::stream", "cuda_sync::event")
_INPUT_SHAPE = ("cpu_op::input_dims", "cpu_op::input_type", "cpu_op::input_strides")
_INDEX = ("index::external_id", "index::python_id", "index::python_parent_id")
_COMMUNICATION = (
    *("nccl::collective_name", "nccl::in_msg_nelems", "nccl::out_msg_nelems", "nccl::dtype"),
    *("nccl::group_size", "nccl::rank", "nccl::in_split_size", "nccl::out_split_size"),
)
_DEFAULT = (*_MINIMUM, *_BANDWIDTH, *_SYNC, *_INPUT_SHAPE, *_INDEX, *_COMMUNICATION)


@cache
def _known() -> dict[str, AttributeSpec]:
    """Return HTA's arguments by key."""
    return {a.hta.key: _spec(a.name, a.hta) for a in known_arguments() if a.hta}


def _spec(name: str, known: HtaColumn) -> AttributeSpec:
    kind = ValueType[known.type]
    default: Any = {ValueType.Int: int, ValueType.Float: float}.get(kind, str)(known.default)
    since = YamlVersion(*map(int, known.since.split(".")))
    return AttributeSpec(known.column, name, kind, default, since)


def _group(keys: Iterable[str]) -> list[AttributeSpec]:
    return [_known()[key] for key in keys]


class ParserConfig:
    """Event arguments that become columns of the frames of a :class:`Trace`.

    The columns of HTA's default arguments always exist. The store has every argument of every
    event, regardless of the ParserConfig.

    Args:
        args: Arguments; default: HTA's.
        user_provide_trace_type: HTA's parameter, without effect. The same holds for ``version``
            (there is one list), ``skip_event_types`` (use a filter or SQL instead) and
            ``convert_ts_to_integer``.
        parse_all_args: Whether every argument that occurs becomes a column, named by
            :meth:`transform_arg_name`.
        selected_arg_keys: Column names to select from ``args``; default: all.

    Attributes:
        args: Arguments that become columns.
    """

    ARGS_INPUT_SHAPE: ClassVar = _group(_INPUT_SHAPE)
    ARGS_BANDWIDTH: ClassVar = _group(_BANDWIDTH)
    ARGS_SYNC: ClassVar = _group(_SYNC)
    ARGS_MINIMUM: ClassVar = _group(_MINIMUM)
    ARGS_COMPLETE: ClassVar = _group(key for key in _known() if not key.startswith("info"))
    ARGS_INFO: ClassVar = _group(("info::labels", "info::name", "info::sort_index"))
    ARGS_COMMUNICATION: ClassVar = _group(_COMMUNICATION)
    ARGS_TRITON_KERNELS: ClassVar = _group(("cpu_op::kernel_backend", "cpu_op::kernel_hash"))
    ARGS_DEFAULT: ClassVar = _group(_DEFAULT)

    _default: ClassVar[ParserConfig | None] = None

    def __init__(  # noqa: PLR0917 - HTA's signature
        self,
        args: list[AttributeSpec] | None = None,
        user_provide_trace_type: object = None,  # noqa: ARG002 - without effect
        version: YamlVersion = _VERSION,  # noqa: ARG002 - without effect
        parse_all_args: bool = False,
        selected_arg_keys: list[str] | None = None,
        skip_event_types: set[str] | None = None,  # noqa: ARG002 - without effect
        convert_ts_to_integer: bool = True,  # noqa: ARG002 - without effect
    ) -> None:
        self.args = list(args or self.ARGS_DEFAULT)
        self.parse_all_args = parse_all_args
        self.selected_arg_keys = selected_arg_keys

    def __repr__(self) -> str:
        return (
            f"ParserConfig(args={[spec.name for spec in self.args]}, "
            f"parse_all_args={self.parse_all_args}, selected_arg_keys={self.selected_arg_keys})"
        )

    def clone(self) -> ParserConfig:
        """Return a copy."""
        return copy.deepcopy(self)

    @classmethod
    def get_default_cfg(cls) -> ParserConfig:
        """Return a copy of the configuration that traces use by default."""
        return (cls._default or ParserConfig()).clone()

    @classmethod
    def set_default_cfg(cls, cfg: ParserConfig) -> None:
        """Set the configuration that traces use by default."""
        ParserConfig._default = cfg.clone()

    @classmethod
    def get_all_available_args(cls) -> dict[str, AttributeSpec]:
        """Return all known arguments by key."""
        return dict(_known())

    @classmethod
    def enable_communication_args(
        cls,
        cfg: ParserConfig | None = None,
        version: YamlVersion = _VERSION,  # noqa: ARG003 - there is one list
    ) -> ParserConfig:
        """Add the arguments of collectives to a configuration (None: the default configuration)."""
        if cfg is None:
            cfg = ParserConfig._default = cls.get_default_cfg()
        cfg.add_args(cls.ARGS_COMMUNICATION)
        return cfg

    @property
    def arg_map(self) -> dict[str, AttributeSpec]:
        """The arguments by column name."""
        return {spec.name: spec for spec in self.args}

    def get_args(self) -> list[AttributeSpec]:
        """Return the arguments that become columns.

        Raises:
            ParameterError: A selected argument does not exist.
        """
        if self.selected_arg_keys is None:
            return self.args
        known = self.arg_map
        if unknown := [key for key in self.selected_arg_keys if key not in known]:
            raise ParameterError(f"{unknown[0]!r} is unknown; available: {', '.join(known)}.")
        return [known[key] for key in self.selected_arg_keys]

    def set_args(self, args: Iterable[AttributeSpec]) -> None:
        """Replace the arguments."""
        given, self.args = list(args), []
        self.add_args(given)

    def add_args(self, args: Iterable[AttributeSpec]) -> None:
        """Add the arguments whose columns do not exist yet."""
        for spec in args:
            if spec.name not in self.arg_map:
                self.args.append(spec)

    def set_args_selector(self, selected_arg_keys: list[str] | None = None) -> ParserConfig:
        """Select columns by name (None: all); return self."""
        self.selected_arg_keys = selected_arg_keys
        return self

    def set_parse_all_args(self, parse_all_args: bool) -> ParserConfig:
        """Set whether every argument becomes a column; return self."""
        self.parse_all_args = parse_all_args
        return self

    @classmethod
    def transform_arg_name(cls, arg: str) -> str:
        """Convert an argument name to a column name: ``blocks per SM`` becomes blocks_per_sm."""
        without_units = re.sub(r"\([^)]*\)", "", arg).lower()
        column = re.sub(r"[ \-/.%_]+", "_", without_units).strip("_")
        return "arg_name" if column == "name" else column

    @classmethod
    def make_attribute_spec(
        cls, raw_name: str, value: object, min_supported_version: YamlVersion = _VERSION
    ) -> AttributeSpec:
        """Return the specification of an argument, derived from one of its values."""
        kinds: list[tuple[type, ValueType, Any]] = [
            (int, ValueType.Int, 0),
            (float, ValueType.Float, 0.0),
            (str, ValueType.String, ""),
            (object, ValueType.Object, None),
        ]
        kind, default = next((k, d) for type_, k, d in kinds if isinstance(value, type_))
        column = cls.transform_arg_name(raw_name)
        return AttributeSpec(column, raw_name, kind, default, min_supported_version)
