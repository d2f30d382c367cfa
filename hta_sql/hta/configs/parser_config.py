"""ParserConfig: which arguments of events become columns of a trace frame."""

from __future__ import annotations

import copy
import logging
import re
from collections.abc import Iterable
from enum import Enum
from typing import Any, ClassVar

import pandas as pd

from hta_sql.errors import ParameterError
from hta_sql.hta.configs.default_values import AttributeSpec, ValueType, YamlVersion
from hta_sql.hta.configs.event_args_yaml_parser import parse_event_args_yaml, v1_0_0

__all__ = [
    "AVAILABLE_ARGS",
    "DEFAULT_PARSE_VERSION",
    "DEFAULT_VER_EVENT_ARGS",
    "ParserBackend",
    "ParserConfig",
    "TraceType",
]

log = logging.getLogger(__name__)

DEFAULT_PARSE_VERSION = v1_0_0
DEFAULT_VER_EVENT_ARGS = parse_event_args_yaml(DEFAULT_PARSE_VERSION)
AVAILABLE_ARGS = DEFAULT_VER_EVENT_ARGS.AVAILABLE_ARGS


class ParserBackend(str, Enum):
    """HTA's ways to read a trace; there is one way here, in bounded memory."""

    JSON = "json"
    IJSON = "ijson"
    IJSON_BATCHED = "ijson_batched"
    IJSON_BATCH_AND_COMPRESS = "ijson_batch_and_compress"


class TraceType(str, Enum):
    """What a trace is of."""

    Training = "training"
    TrainingWoProfilerstepAnnot = "training_wo_profilerstep_annot"
    Inference = "inference"


class ParserConfig:
    """Which arguments of events become columns of the frames of a :class:`Trace`.

    The columns of HTA's default and communication arguments are there in any case. The store has
    every argument of every event, whatever a ParserConfig says.

    Args:
        args: Arguments; default: HTA's.
        user_provide_trace_type: Kept, without effect.
        version: Kept; there is one list of arguments.
        parse_all_args: Whether every argument that occurs becomes a column, under the name that
            :meth:`transform_arg_name` gives.
        selected_arg_keys: Names of columns, of those of ``args``, to take; default: all.
        skip_event_types: Kept, without effect: choose events with a filter or in SQL.

    Attributes:
        args: Arguments that become columns.
        parser_backend: Kept, without effect, as ``trace_memory``, ``drop_gpu_user_annotation`` and
            ``min_required_cols`` are.
    """

    ARGS_INPUT_SHAPE: ClassVar = DEFAULT_VER_EVENT_ARGS.ARGS_INPUT_SHAPE
    ARGS_BANDWIDTH: ClassVar = DEFAULT_VER_EVENT_ARGS.ARGS_BANDWIDTH
    ARGS_SYNC: ClassVar = DEFAULT_VER_EVENT_ARGS.ARGS_SYNC
    ARGS_MINIMUM: ClassVar = DEFAULT_VER_EVENT_ARGS.ARGS_MINIMUM
    ARGS_COMPLETE: ClassVar = DEFAULT_VER_EVENT_ARGS.ARGS_COMPLETE
    ARGS_INFO: ClassVar = DEFAULT_VER_EVENT_ARGS.ARGS_INFO
    ARGS_COMMUNICATION: ClassVar = DEFAULT_VER_EVENT_ARGS.ARGS_COMMUNICATION
    ARGS_TRITON_KERNELS: ClassVar = DEFAULT_VER_EVENT_ARGS.ARGS_TRITON_KERNELS
    ARGS_DEFAULT: ClassVar = DEFAULT_VER_EVENT_ARGS.ARGS_DEFAULT
    DEFAULT_MIN_REQUIRED_COLS: ClassVar = ["ts", "dur", "name", "cat", "pid", "tid"]

    _default: ClassVar[ParserConfig | None] = None

    def __init__(  # noqa: PLR0917 - HTA's signature
        self,
        args: list[AttributeSpec] | None = None,
        user_provide_trace_type: TraceType | None = None,
        version: YamlVersion = DEFAULT_PARSE_VERSION,
        parse_all_args: bool = False,
        selected_arg_keys: list[str] | None = None,
        skip_event_types: set[str] | None = None,
    ) -> None:
        self.args = list(args or self.get_default_args(version))
        self.user_provide_trace_type = user_provide_trace_type
        self.version = version
        self.parse_all_args = parse_all_args
        self.selected_arg_keys = selected_arg_keys
        self.skip_event_types = skip_event_types
        self.parser_backend: ParserBackend | None = None
        self.trace_memory = False
        self.drop_gpu_user_annotation = True
        self.min_required_cols = list(self.DEFAULT_MIN_REQUIRED_COLS)

    def clone(self) -> ParserConfig:
        """Copy it."""
        return copy.deepcopy(self)

    @classmethod
    def get_default_cfg(cls) -> ParserConfig:
        """Copy the configuration that traces have where none is given."""
        return (cls._default or ParserConfig()).clone()

    @classmethod
    def set_default_cfg(cls, cfg: ParserConfig) -> None:
        """Set the configuration that traces have where none is given, from now on."""
        ParserConfig._default = cfg.clone()

    @classmethod
    def get_versioned_cfg(cls, version: YamlVersion) -> ParserConfig:
        """Make a configuration with HTA's default arguments."""
        return ParserConfig(version=version)

    @staticmethod
    def set_global_parser_config_version(version: YamlVersion) -> None:
        """Set the default configuration back to HTA's default arguments."""
        ParserConfig._default = ParserConfig(version=version)

    @classmethod
    def get_minimum_args(cls, version: YamlVersion = DEFAULT_PARSE_VERSION) -> list[AttributeSpec]:
        """List stream and correlation."""
        return list(parse_event_args_yaml(version).ARGS_MINIMUM)

    @classmethod
    def get_default_args(cls, version: YamlVersion = DEFAULT_PARSE_VERSION) -> list[AttributeSpec]:
        """List HTA's default arguments."""
        return list(parse_event_args_yaml(version).ARGS_DEFAULT)

    @classmethod
    def get_info_args(cls, version: YamlVersion = DEFAULT_PARSE_VERSION) -> list[AttributeSpec]:
        """List the arguments of metadata events."""
        return list(parse_event_args_yaml(version).ARGS_INFO)

    @classmethod
    def get_all_available_args(cls) -> dict[str, AttributeSpec]:
        """Return all known arguments by their keys."""
        return AVAILABLE_ARGS

    @classmethod
    def show_available_args(cls) -> None:
        """Log all known arguments."""
        for key, spec in AVAILABLE_ARGS.items():
            log.info("%s: %s", key, spec)

    @classmethod
    def enable_communication_args(
        cls, cfg: ParserConfig | None = None, version: YamlVersion = DEFAULT_PARSE_VERSION
    ) -> ParserConfig:
        """Add the arguments of collectives to a configuration; default: to the default one."""
        if cfg is None:
            cfg = ParserConfig._default = cls.get_default_cfg()
        cfg.add_args(parse_event_args_yaml(version).ARGS_COMMUNICATION)
        return cfg

    @property
    def arg_map(self) -> dict[str, AttributeSpec]:
        """The arguments by the names of their columns."""
        return {spec.name: spec for spec in self.args}

    def get_args(self) -> list[AttributeSpec]:
        """List the arguments that become columns.

        Raises:
            ParameterError: One is selected that is not there.
        """
        if self.selected_arg_keys is None:
            return self.args
        known = self.arg_map
        if unknown := [key for key in self.selected_arg_keys if key not in known]:
            raise ParameterError(f"{unknown[0]!r} is selected; there are: {', '.join(known)}.")
        return [known[key] for key in self.selected_arg_keys]

    def set_args(self, args: Iterable[AttributeSpec]) -> None:
        """Replace the arguments."""
        given, self.args = list(args), []
        self.add_args(given)

    def add_args(self, args: Iterable[AttributeSpec]) -> None:
        """Add arguments whose columns are not there yet."""
        for spec in args:
            if spec.name not in self.arg_map:
                self.args.append(spec)

    def set_args_selector(self, selected_arg_keys: list[str] | None = None) -> ParserConfig:
        """Take some columns, or all of them; returns this."""
        self.selected_arg_keys = selected_arg_keys
        return self

    def set_parse_all_args(self, parse_all_args: bool) -> ParserConfig:
        """Say whether every argument becomes a column; returns this."""
        self.parse_all_args = parse_all_args
        return self

    def set_skip_event_types(self, skip_event_types: set[str] | None = None) -> ParserConfig:
        """Keep the value, without effect; returns this."""
        self.skip_event_types = skip_event_types
        return self

    def set_min_required_cols(self, cols: list[str]) -> None:
        """Keep the value, without effect: the columns are always there."""
        self.min_required_cols = list(cols)

    def get_min_required_cols(self) -> list[str]:
        """Return what was set."""
        return self.min_required_cols

    def set_trace_memory(self, trace_memory: bool) -> None:
        """Keep the value, without effect: memory is bounded."""
        self.trace_memory = trace_memory

    def set_drop_gpu_user_annotation(self, should_drop: bool) -> None:
        """Keep the value, without effect: HTA does not look at it either."""
        self.drop_gpu_user_annotation = should_drop

    def set_parser_backend(self, parser_backend: ParserBackend | None) -> None:
        """Keep the value, without effect: there is one way to read a trace."""
        self.parser_backend = parser_backend

    @classmethod
    def transform_arg_name(cls, arg: str) -> str:
        """Make the name of a column of that of an argument: ``blocks per SM`` is blocks_per_sm."""
        without_units = re.sub(r"\([^)]*\)", "", arg).lower()
        column = re.sub(r"[ \-/.%_]+", "_", without_units).strip("_")
        return "arg_name" if column == "name" else column

    @classmethod
    def infer_attribute_specs(
        cls, args: pd.Series, reference_specs: dict[str, AttributeSpec] | None = None
    ) -> dict[str, AttributeSpec]:
        """Describe the arguments that occur.

        Args:
            args: Arguments of events as dicts; others are passed over.
            reference_specs: Descriptions to take where one is of the argument.

        Returns:
            {name of the argument: description}, by its first value.
        """
        known = {spec.raw_name: spec for spec in (reference_specs or {}).values()}
        found: dict[str, AttributeSpec] = {}
        for event in args:
            for name, value in event.items() if isinstance(event, dict) else ():
                if name not in found:
                    spec = None if name == "name" else known.get(name)
                    found[name] = spec or cls.make_attribute_spec(name, value)
        return found

    @classmethod
    def make_attribute_spec(
        cls,
        raw_name: str,
        value: object,
        min_supported_version: YamlVersion = DEFAULT_PARSE_VERSION,
    ) -> AttributeSpec:
        """Describe an argument by one of its values."""
        kinds: list[tuple[type, ValueType, Any]] = [
            (int, ValueType.Int, 0),
            (float, ValueType.Float, 0.0),
            (str, ValueType.String, ""),
            (object, ValueType.Object, None),
        ]
        kind, default = next((k, d) for type_, k, d in kinds if isinstance(value, type_))
        column = cls.transform_arg_name(raw_name)
        return AttributeSpec(column, raw_name, kind, default, min_supported_version)
