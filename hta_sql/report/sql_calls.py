"""Renders the SQL of a section: a call to its analysis with values, and its source file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from hta_sql.library import sqltext
from hta_sql.library.objects import SqlObject
from hta_sql.report.rendering import render


def sql_markup(analysis: SqlObject, values: Mapping[str, Any]) -> Markup:
    """Render an analysis's call, for a DuckDB shell on the store's catalog, and its source code."""
    paragraphs = [part for part in analysis.description.split("\n\n") if part]
    call = pasteable(analysis, values)
    return render("sql", analysis=analysis, paragraphs=paragraphs, call=call)


def pasteable(analysis: SqlObject, values: Mapping[str, Any]) -> str:
    """Return the SQL that calls an analysis with values for its parameters."""
    texts = {key: _literal(value) for key, value in values.items()}
    return sqltext.call(analysis.name, texts) + ";"


def _literal(value: Any) -> str:
    if isinstance(value, list):
        return sqltext.literal_list(value)
    return sqltext.literal(value)
