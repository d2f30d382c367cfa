"""Maps exceptions to error messages and exit codes; bugs keep their traceback."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import click

from hta_sql.errors import HtaSqlError
from hta_sql.exhausted import reason_of

HELP_COMMAND = "hta_sql.help_command"
"""Key in ``click.Context.meta`` for the command whose help explains a usage error."""

USER_ERROR, USAGE_ERROR = 1, 2


@dataclass(frozen=True)
class Failure:
    """An error message and an exit code."""

    message: str
    exit_code: int


INTERRUPTED = Failure("interrupted.", 130)

_CLIENTS = ("aiobotocore", "aiohttp", "azure", "botocore", "gcsfs", "google", "s3fs")
"""Packages that contain clients of object storage."""


def failure_of(error: Exception) -> Failure | None:
    """Convert an exception to a failure; return None for a bug, which keeps its traceback."""
    match error:
        case click.UsageError():
            failure = Failure(_usage_message(error), USAGE_ERROR)
        case click.ClickException():
            failure = Failure(error.format_message(), error.exit_code)
        case click.Abort():
            failure = INTERRUPTED
        case HtaSqlError(__cause__=Exception() as cause) if _is_memory(cause):
            failure = Failure(_engine_message(cause), USER_ERROR)
        case HtaSqlError():
            failure = Failure(str(error), USER_ERROR)
        case _ if reason := reason_of(error):
            failure = Failure(reason, USER_ERROR)
        case OSError():
            failure = Failure(_system_message(error), USER_ERROR)
        case _ if _is_engine_error(error):
            failure = Failure(_engine_message(error), USER_ERROR)
        case _ if _is_of_storage(error):
            failure = Failure(f"the storage backend is not responding: {error}.", USER_ERROR)
        case _:
            return None
    return failure


def _usage_message(error: click.UsageError) -> str:
    message = error.format_message().replace(". (Did", " (Did").rstrip(".")
    # The only option that resembles another one does so by chance, and is named below.
    message = message.removesuffix(". Did you mean '--help'?")
    end = "" if message.endswith("?") else "."
    context = error.ctx
    command = context.meta.get(HELP_COMMAND, context.command_path) if context else "hta-sql"
    return f"{message}{end} See: {command} --help"


def _system_message(error: OSError) -> str:
    """Return the system's message with the file names: no permission, no space, not a folder."""
    names = [str(name) for name in (error.filename, error.filename2) if name]
    return f"{error.strerror or error}{': ' + ', '.join(map(repr, names)) if names else ''}."


def _engine_message(error: Exception) -> str:
    """Return the first line of an engine error; the other lines suggest engine settings."""
    first = str(error).split("\n", 1)[0]
    remedy = ". Raise the limit: --memory-limit" if _is_memory(error) else ""
    return f"the engine failed: {first}{remedy}"


def _is_memory(error: Exception) -> bool:
    return _is_engine_error(error) and str(error).startswith("Out of Memory")


def _is_engine_error(error: Exception) -> bool:
    """Return whether DuckDB raised the error, without importing DuckDB."""
    duckdb = sys.modules.get("duckdb")
    return duckdb is not None and isinstance(error, duckdb.Error)


def _is_of_storage(error: Exception) -> bool:
    """Return whether a client of object storage raised the error (network, credentials)."""
    return type(error).__module__.partition(".")[0] in _CLIENTS
