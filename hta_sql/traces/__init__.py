"""Traces as files, local or not: read whole, rescued where broken, written anew."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

Traces = str | Iterable[str] | Mapping[int, str]
"""A file, a folder, a glob, a list of these, or {rank: path}."""
