"""Tests that the options of ingest are defined once and documented everywhere."""

from __future__ import annotations

import dataclasses
import inspect
from typing import TYPE_CHECKING

import pytest

import hta_sql
from hta_sql.cli.ingest import ingest as command
from hta_sql.ingestion.options import IngestOptions, ShardOptions

if TYPE_CHECKING:
    from collections.abc import Callable

OPTIONS = [field.name for field in dataclasses.fields(IngestOptions)]


@pytest.mark.parametrize(
    ("function", "options"), [(hta_sql.ingest, IngestOptions), (hta_sql.ingest_shard, ShardOptions)]
)
def test_each_option_is_in_the_signature_and_in_the_words(
    function: Callable[..., object], options: type
) -> None:
    """``help(hta_sql.ingest)`` shows every option; only traces and store are positional."""
    signature = inspect.signature(function)
    assert list(signature.parameters) == [field.name for field in dataclasses.fields(options)]
    for field in dataclasses.fields(options):
        parameter = signature.parameters[field.name]
        is_first = field.name in {"traces", "store"}
        kind = parameter.POSITIONAL_OR_KEYWORD if is_first else parameter.KEYWORD_ONLY
        assert parameter.kind is kind
        assert f"\n    {field.name}: " in (function.__doc__ or "")
    assert "\n\nReturns:\n" in (function.__doc__ or "")


def test_the_command_has_them_all() -> None:
    """The command adds ``shard`` and ``verbose``, and lacks only ``progress`` and ``strict``."""
    names = {str(parameter.name) for parameter in command.params}
    assert set(OPTIONS) - names == {"progress", "strict"}
    assert names - set(OPTIONS) == {"shard", "verbose"}


def test_an_option_that_there_is_not() -> None:
    """An unknown option is a usage error, raised before anything is read."""
    with pytest.raises(TypeError, match="ranksx"):
        hta_sql.ingest("nowhere", "job.store", ranksx=[1])  # type: ignore[call-arg]


def test_every_public_name_is_importable() -> None:
    """Public names are loaded on first use, so check that each of them exists."""
    for name in hta_sql.__all__:
        assert getattr(hta_sql, name) is not None, name
