"""Matches graph replays with the captures of their graphs while a rank is ingested."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from hta_sql.ingestion.graph_nodes import Nodes, pair_nodes, shared_count
from hta_sql.ingestion.statements import run
from hta_sql.library.sql_files import ingest_sql, sql_root

CAPTURED_SCHEMA = pa.schema(
    [
        *(("source", pa.string()), ("graph_number", pa.int32()), ("node_number", pa.int32())),
        *(("name", pa.string()), ("graph_label", pa.string()), ("graph_tokens", pa.int64())),
        *(
            ("captured_op_id", pa.int64()),
            ("captured_op_name", pa.string()),
            ("input_dims", pa.string()),
        ),
        *(("input_types", pa.string()), ("concrete_inputs", pa.string())),
        *(("module_path", pa.string()), ("captured_frame", pa.string())),
    ]
)
"""Captured launches; see sql/ingest/link/graph_captures.sql."""

MATCHED_SCHEMA = pa.schema(
    [
        *(("event_id", pa.int64()), ("source", pa.string()), ("graph_number", pa.int32())),
        *(("node_number", pa.int32()), ("match_method", pa.string())),
    ]
)

Names = tuple[str | None, ...]
Replay = dict[str, Any]
"""A row that the statement replayed_graphs returns."""


@dataclass(frozen=True)
class Graph:
    """A captured graph: kernel names and operator input shapes of its launches, in order."""

    source: str
    number: int
    tokens: int | None
    names: Names
    shapes: Names


@dataclass(frozen=True)
class _Match:
    """A replay, the captured graph that matches it, and the launch of each of its operations."""

    replay: Replay
    graph: Graph
    nodes: Nodes
    method: str


class GraphCaptures:
    """The captured graphs that one rank may replay.

    Args:
        launches: Launches in the graph captures of the rank, in order.
    """

    def __init__(self, launches: pa.Table) -> None:
        self.launches = launches
        self._pairs: dict[tuple[Names, Names], tuple[Nodes, str] | None] = {}
        self._iterations: dict[tuple[object, ...], list[int | None]] = {}

    @cached_property
    def graphs(self) -> list[Graph]:
        """The graphs in the order in which they were captured."""
        columns = ("source", "graph_number", "graph_tokens", "name", "input_dims")
        rows = self.launches.select(columns).to_pylist()
        return [
            Graph(*key, *zip(*((row["name"], row["input_dims"]) for row in group), strict=True))
            for key, group in groupby(rows, itemgetter(*columns[:3]))
        ]

    def match(self, replays: Iterable[Replay]) -> list[_Match]:
        """Match replays, sorted by launch, iteration by iteration."""
        by_iteration = itemgetter("part", "pid", "tid", "iteration_id", "tokens")
        matches: list[_Match] = []
        for (*_, iteration, tokens), group in groupby(replays, by_iteration):
            of_group = list(group)
            matches += (
                self._of_thread(of_group)
                if iteration is None
                else self._of_iteration(of_group, tokens)
            )
        return matches

    def _of_iteration(self, replays: list[Replay], tokens: int | None) -> list[_Match]:
        """Match the replays of one iteration with the graphs that fit its number of tokens."""
        graphs = self._of_size(tokens)
        lists = tuple(tuple(replay["names"]) for replay in replays)
        key = lists, len(graphs), tokens
        if key not in self._iterations:
            self._iterations[key] = self._in_order(lists, [graph.names for graph in graphs])
        matches = [
            _Match(replay, graphs[found], *paired)
            for replay, found in zip(replays, self._iterations[key], strict=True)
            if found is not None and (paired := self._pair(replay["names"], graphs[found].names))
        ]
        is_padded = tokens and any(match.graph.tokens not in (None, tokens) for match in matches)
        is_whole = len(matches) == len(replays) and all(m.method != "alignment" for m in matches)
        # A padded graph is larger than the iteration, but its kernels must be the ones that ran.
        return [] if is_padded and not is_whole else matches

    def _in_order(self, replays: Sequence[Names], graphs: Sequence[Names]) -> list[int | None]:
        """Assign graphs to replays in order, so that as many operations as possible have a launch.

        Layers of a model have equal graphs, and a replay that lost an operation may look like a
        different graph. Therefore the assignment also depends on the neighboring replays. A replay
        that remains unassigned gets the first graph with the same kernel names.
        """
        best = [[0.0] * (len(graphs) + 1) for _ in range(len(replays) + 1)]
        for row, names in enumerate(replays):
            worth = {graph: self._worth(names, graph) for graph in set(graphs)}
            for column, graph in enumerate(graphs):
                best[row + 1][column + 1] = max(
                    best[row][column] + worth[graph], best[row][column + 1], best[row + 1][column]
                )
        found: list[int | None] = [None] * len(replays)
        row, column = len(replays), len(graphs)
        while row and column:
            if best[row][column] == best[row][column - 1]:
                column -= 1
            elif best[row][column] == best[row - 1][column]:
                row -= 1
            else:
                row, column = row - 1, column - 1
                found[row] = column
        firsts: dict[Names, int] = {}
        for position, graph in enumerate(graphs):
            firsts.setdefault(graph, position)
        return [
            firsts.get(names) if position is None else position
            for names, position in zip(replays, found, strict=True)
        ]

    def _of_thread(self, replays: list[Replay]) -> list[_Match]:
        """Match the replays of a thread without named iterations by cycling through the graphs."""
        matches: list[_Match] = []
        last = -1
        for replay in replays:
            for position in self._candidates(tuple(replay["names"]), last):
                paired = self._pair(replay["names"], self._clear[position].names)
                if paired:
                    last = position
                    matches.append(_Match(replay, self._clear[position], *paired))
                    break
        return matches

    def _candidates(self, replayed: Names, last: int) -> Iterator[int]:
        """Yield the positions of graphs that a replay may belong to, after the last graph that ran.

        The next graph comes first, if it contains all kernels of the replay. It is followed by the
        next graph with the same kernel names or, if there is none, by the most similar graph.
        """
        count = len(self._clear)
        if not count:
            return
        following = (last + 1) % count
        if shared_count(replayed, self._clear[following].names) == len(replayed):
            yield following
        rest = [*range(following, count), *range(following)]
        same = self._positions.get(replayed, [])
        if same:
            yield min(same, key=rest.index)
        else:
            yield max(rest, key=lambda position: self._worth(replayed, self._clear[position].names))

    @cached_property
    def _clear(self) -> list[Graph]:
        """Graphs whose kernel names determine the shapes, because only one size was captured."""
        shapes: dict[Names, set[Names]] = defaultdict(set)
        for graph in self.graphs:
            shapes[graph.names].add(graph.shapes)
        return [graph for graph in self.graphs if len(shapes[graph.names]) == 1]

    @cached_property
    def _positions(self) -> dict[Names, list[int]]:
        positions: dict[Names, list[int]] = defaultdict(list)
        for position, graph in enumerate(self._clear):
            positions[graph.names].append(position)
        return dict(positions)

    def _of_size(self, tokens: int | None) -> list[Graph]:
        """Return the graphs of the smallest size that fits the tokens, if sizes are known."""
        sizes = {graph.tokens for graph in self.graphs if graph.tokens}
        if tokens is None or not sizes:
            return self._clear
        size = min((size for size in sizes if size >= tokens), default=None)
        return [graph for graph in self.graphs if graph.tokens == size and size]

    def _pair(self, replayed: Sequence[str], captured: Names) -> tuple[Nodes, str] | None:
        pair = (tuple(replayed), captured)
        if pair not in self._pairs:
            self._pairs[pair] = pair_nodes(replayed, captured)
        return self._pairs[pair]

    def _worth(self, replayed: Names, captured: Names) -> float:
        """Return the number of operations with a launch, plus 0.5 if the lists are equally long."""
        paired = self._pair([name or "" for name in replayed], captured)
        if not paired:
            return 0
        return sum(node is not None for node in paired[0]) + (len(replayed) == len(captured)) / 2


def match_graphs(con: duckdb.DuckDBPyConnection, captures: Mapping[int, Sequence[pa.Table]]) -> int:
    """Create the table graph_matches from staged and linked events; return its number of rows.

    Args:
        con: The database of the ranks.
        captures: Number of a trace ─▶ captured launches that it may replay.
    """
    files = {
        name: str(sql_root() / "tables" / f"iteration_{name}.csv") for name in ("formats", "fields")
    }
    launches = {part: pa.concat_tables(tables) for part, tables in captures.items() if tables}
    matched: list[pa.Table] = [MATCHED_SCHEMA.empty_table()]
    if launches:
        select = ingest_sql("link/graph_captures", "replayed_graphs")
        replays = con.sql(select, params=files).to_arrow_table().to_pylist()
        for part, of_rank in groupby(replays, itemgetter("part")):
            if part in launches:
                matched.append(_rows(GraphCaptures(launches[part]).match(of_rank)))
    nodes = pa.concat_tables(matched)
    known = pa.concat_tables([CAPTURED_SCHEMA.empty_table(), *_distinct(launches.values())])
    con.register("matched_nodes", nodes)
    con.register("captured_launches", known)
    run(con, ingest_sql("link/graph_captures", "graph_matches"))
    con.unregister("matched_nodes")
    con.unregister("captured_launches")
    return int(nodes.num_rows)


def _distinct(tables: Iterable[pa.Table]) -> list[pa.Table]:
    """Return the launches of each capture once, because ranks of a batch may share captures."""
    found: dict[str, pa.Table] = {}
    for table in tables:
        for source in table["source"].unique().to_pylist():
            found.setdefault(source, table.filter(pc.equal(table["source"], source)))
    return list(found.values())


def _rows(matches: Iterable[_Match]) -> pa.Table:
    columns: dict[str, list[Any]] = {name: [] for name in MATCHED_SCHEMA.names}
    for match in matches:
        for event_id, node in zip(match.replay["event_ids"], match.nodes, strict=True):
            if node is not None:
                columns["event_id"].append(event_id)
                columns["source"].append(match.graph.source)
                columns["graph_number"].append(match.graph.number)
                columns["node_number"].append(node)
                columns["match_method"].append(match.method)
    return pa.table(columns, schema=MATCHED_SCHEMA)
