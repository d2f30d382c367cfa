"""Define the MCP tools and resources that an agent can use, with the official SDK."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any

from hta_sql._version import __version__
from hta_sql.errors import ExtraNotInstalledError, HtaSqlError, ParameterError
from hta_sql.library.objects import Library, SqlObject
from hta_sql.serve.mcp.bounded_json import Answer, cut
from hta_sql.serve.mcp.limits import Limits
from hta_sql.serve.mcp.responses import StoreTools, described

if TYPE_CHECKING:
    from mcp.server import MCPServer

    from hta_sql.store.query.trace_store import TraceStore

INSTRUCTIONS = """\
Stores of PyTorch Profiler traces: one run is one capture of a training or serving job, one rank one process.
Start with open_store, then doctor and advice; then run the analyses that they name. Times are integer
nanoseconds, columns carry their unit. NULL is unknown, never 0. An answer with is_truncated has more rows:
narrow it by runs, ranks or steps, or aggregate in SQL. Numbers are facts of the traces; name the analysis that they come from."""

SCHEMA = "hta-sql://schema"
ANALYSES = "hta-sql://analyses"


def make_server(stores: Mapping[str, TraceStore], limits: Limits) -> MCPServer[Any]:
    """Return a server over stores; ``.run()`` serves it on stdin and stdout.

    Args:
        stores: Name ─▶ store, opened with ``safe=True``; the first is the default.
        limits: Limits of each answer.

    Raises:
        ExtraNotInstalledError: The SDK is not installed.
    """
    try:
        from mcp.server import MCPServer  # noqa: PLC0415 - an optional dependency
    except ImportError as error:
        raise ExtraNotInstalledError(
            "The MCP SDK is not installed: pip install 'hta_sql[mcp]'"
        ) from error
    server: MCPServer[Any] = MCPServer(
        "hta_sql", version=__version__, instructions=INSTRUCTIONS, log_level="WARNING"
    )
    asked = {name: StoreTools(store, limits) for name, store in stores.items()}
    library = next(iter(stores.values())).library
    for tool in Tools(asked, library).listed():
        server.tool()(_with_errors(tool))

    @server.resource(SCHEMA, title="Tables and columns")
    def schema_text() -> str:
        """Tables and their columns, with units."""
        return "\n\n".join(map(_object_text, library.tables))

    @server.resource(ANALYSES, title="Analyses, their parameters and columns")
    def analyses_text() -> str:
        """Analyses with their parameters and columns."""
        return "\n\n".join(map(_object_text, library.newest()))

    return server


def _with_errors(tool: Callable[..., Answer]) -> Callable[..., Answer]:
    """Convert errors of hta_sql to tool errors, so that the agent sees their messages."""
    from mcp.server.mcpserver.exceptions import ToolError  # noqa: PLC0415 - an optional dependency

    @wraps(tool)
    def wrapped(*args: Any, **named: Any) -> Answer:
        try:
            return tool(*args, **named)
        except HtaSqlError as error:
            raise ToolError(cut(str(error))) from error

    return wrapped


class Tools:
    """Tools of a server. ``store`` is a name that open_store lists; the default is the first."""

    def __init__(self, stores: Mapping[str, StoreTools], library: Library) -> None:
        self._stores = stores
        self._library = library

    def listed(self) -> list[Callable[..., Answer]]:
        """Return the tools in the order in which an agent needs them."""
        first: list[Callable[..., Answer]] = [self.open_store, self.list_analyses, self.describe]
        return [*first, self.run, self.sql, self.doctor, self.advice, self.compare, self.hang]

    def open_store(self, store: str | None = None) -> Answer:
        """List the stores and runs, and suggest what to run first."""
        return {"stores": list(self._stores), **self._of(store).ask("overview")}

    def list_analyses(self, topic: str | None = None) -> Answer:
        """List the analyses: name, topic, summary. Topics: timeline, communication, kernels, …."""
        found = self._library.newest_by_topic()
        return {
            "analyses": [
                {"name": a.base_name, "topic": a.topic, "says": a.summary}
                for a in found
                if topic in (None, a.topic)
            ],
            "next": ["describe NAME", "run NAME"],
        }

    def describe(self, name: str) -> Answer:
        """Describe parameters and columns, with units, of an analysis or a table (gpu_ops)."""
        return described(self._library.described(name))

    def run(
        self,
        name: str,
        parameters: dict[str, Any] | None = None,
        limit: int | None = None,
        columns: list[str] | None = None,
        store: str | None = None,
    ) -> Answer:
        """Run an analysis, for example step_accounting with {"runs": ["base"], "ranks": [0]}.

        Returns the first rows and the main columns. limit is a number of rows, columns a list of
        names from describe, or ["*"].
        """
        return self._of(store).ask(
            "run", name=name, parameters=parameters or {}, limit=limit, columns=columns
        )

    def sql(self, query: str, limit: int | None = None, store: str | None = None) -> Answer:
        """Run one SELECT (DuckDB SQL), for example FROM kpis or FROM idle_causes(ranks := [0]).

        It can read the tables and analyses of the store and nothing else. limit is a number of rows.
        """
        return self._of(store).ask("sql", query=query, limit=limit)

    def doctor(self, store: str | None = None) -> Answer:
        """List data missing from the traces, what that limits, and which profiler option helps."""
        return self._of(store).ask("doctor")

    def advice(
        self,
        runs: list[str] | None = None,
        ranks: list[int] | None = None,
        limit: int | None = None,
        store: str | None = None,
    ) -> Answer:
        """List recommended changes, largest saving first.

        Each has a finding, remedy, maximum saving and evidence.
        """
        given = {"runs": runs, "ranks": ranks}
        chosen = {key: value for key, value in given.items() if value is not None}
        return self._of(store).ask("advice", parameters=chosen, limit=limit)

    def compare(
        self,
        control: dict[str, Any],
        test: dict[str, Any],
        renamed: list[str] | None = None,
        store: str | None = None,
    ) -> Answer:
        """Compare two sides, control and test, each {"run": NAME, "ranks": [0], "steps": [3]}.

        ranks and steps are optional. The answer says whether the sides are comparable, the headline
        with its noise, parts that sum to it, and changes beyond noise. renamed lists operators that
        have another name in the test, as "new=old".
        """
        for side in (control, test):
            if "run" not in side:
                raise ParameterError('control and test each need a run: {"run": "base"}.')
        return self._of(store).ask("compare", control=control, test=test, renamed=renamed)

    def hang(self, runs: list[str] | None = None, store: str | None = None) -> Answer:
        """Find stuck collectives and the ranks that block them, from Flight Recorder dumps.

        One row per stuck process group; rows with is_root have the cause, the others follow.
        """
        return self._of(store).ask("hang", parameters={"runs": runs} if runs else {})

    def _of(self, store: str | None) -> StoreTools:
        if store is not None and store not in self._stores:
            raise ParameterError(f"No store {store!r}; available: {', '.join(self._stores)}.")
        return self._stores[store or next(iter(self._stores))]


def _object_text(found: SqlObject) -> str:
    parameters = ", ".join(f"{p.name} {p.type} := {p.default}" for p in found.parameters)
    lines = [f"## {found.base_name}({parameters})" if parameters else f"## {found.base_name}"]
    lines.append(found.summary)
    for column in found.columns:
        unit = f" [{column.unit}]" if column.unit else ""
        lines.append(f"- {column.name} {column.type}{unit}: {column.doc}")
    return "\n".join(lines)
