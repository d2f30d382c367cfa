"""Store the edges of a critical path as arrays behind networkx's edge mapping interface."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from hta_sql.critical_path.longest import IntArray
from hta_sql.errors import ParameterError
from hta_sql.text import NS

if TYPE_CHECKING:
    import pyarrow as pa

NO_EVENT = -1


class CPEdgeType(Enum):
    """Type of an edge; the values are those of HTA."""

    OPERATOR_KERNEL = "critical_path_operator"
    DEPENDENCY = "critical_path_dependency"
    KERNEL_LAUNCH_DELAY = "critical_path_kernel_launch_delay"
    KERNEL_KERNEL_DELAY = "critical_path_kernel_kernel_delay"
    SYNC_DEPENDENCY = "critical_path_sync_dependency"

    @classmethod
    def of(cls, edge_type: str) -> CPEdgeType:
        """Return the member for an ``edge_type`` of the analysis."""
        return cls(f"critical_path_{edge_type}")

    @property
    def code(self) -> int:
        """Position of the member in the enum, as stored in arrays."""
        return list(CPEdgeType).index(self)


@dataclass(frozen=True)
class CPEdge:
    """A dependency between two nodes.

    Attributes:
        begin: Number of the node that must come first.
        end: Number of the node that depends on ``begin``.
        weight_ns: Duration of the edge [ns].
        type: Type of the edge.
    """

    begin: int
    end: int
    weight_ns: int
    type: CPEdgeType

    @property
    def weight(self) -> float:
        """Duration of the edge in µs, as in HTA."""
        return self.weight_ns / NS


def integers(table: pa.Table, column: str) -> IntArray:
    """Return a column as a writable array, with ``NO_EVENT`` instead of NULL."""
    import pyarrow.compute as pc  # noqa: PLC0415 - imported only when needed

    found: IntArray = pc.fill_null(table.column(column), NO_EVENT).to_numpy().astype(np.int64)
    return found


class EdgeView(Mapping[tuple[int, int], "EdgeData"]):
    """Edges with the interface of networkx, backed by arrays.

    Supports ``edges[u, v]["object"]``, ``edges[u, v]["weight"] = µs`` and iteration over ``(u,
    v)``.

    Args:
        table: Rows of the analysis ``critical_path_edges`` for one rank, in its row order.

    Attributes:
        begins: First node of each edge.
        ends: Second node of each edge.
        weights: Weight of each edge [ns].
        types: Type of each edge, as :attr:`CPEdgeType.code`.
        events: Event that the duration of each edge is attributed to; -1 for none.
    """

    def __init__(self, table: pa.Table) -> None:
        kinds = table.column("edge_type").combine_chunks().dictionary_encode()
        codes = [CPEdgeType.of(kind).code for kind in kinds.dictionary.to_pylist()]
        self.begins, self.ends, self.weights, self.events = (
            integers(table, column)
            for column in ("begin_node_id", "end_node_id", "weight_ns", "event_id")
        )
        self.types = np.array(codes, np.int8)[kinds.indices.to_numpy()]
        self._members = list(CPEdgeType)
        self._places: dict[tuple[int, int], int] | None = None

    def edge(self, at: int) -> CPEdge:
        """Return the edge at an index of the arrays."""
        kind = self._members[int(self.types[at])]
        return CPEdge(int(self.begins[at]), int(self.ends[at]), int(self.weights[at]), kind)

    def event_of(self, begin: int, end: int) -> int | None:
        """Return the event that the duration of an edge is attributed to, or None."""
        place = self._place.get((begin, end))
        event = NO_EVENT if place is None else int(self.events[place])
        return None if event == NO_EVENT else event

    @property
    def _place(self) -> dict[tuple[int, int], int]:
        if self._places is None:
            pairs = zip(self.begins.tolist(), self.ends.tolist(), strict=True)
            self._places = {pair: at for at, pair in enumerate(pairs)}
        return self._places

    def __getitem__(self, nodes: tuple[int, int]) -> EdgeData:
        return EdgeData(self, self._place[nodes])

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(zip(self.begins.tolist(), self.ends.tolist(), strict=True))

    def __len__(self) -> int:
        return len(self.begins)

    def __call__(self, data: bool = False) -> Iterator[Any]:
        """Iterate like networkx: over ``(u, v)``, or ``(u, v, data)`` if ``data`` is true."""
        for at, (begin, end) in enumerate(self):
            yield (begin, end, EdgeData(self, at)) if data else (begin, end)


class EdgeData(MutableMapping[str, Any]):
    """Edge attributes of networkx: ``object`` (a CPEdge) and the writable ``weight`` [µs]."""

    _KEYS = ("weight", "object")

    def __init__(self, view: EdgeView, at: int) -> None:
        self._view, self._at = view, at

    def __getitem__(self, key: str) -> Any:
        edge = self._view.edge(self._at)
        return {"weight": edge.weight, "object": edge}[key]

    def __setitem__(self, key: str, value: float) -> None:
        if key != "weight" or value < 0:
            raise ParameterError(
                f"Only the weight of an edge can be set, to a non-negative number of µs, not {key}={value!r}."
            )
        self._view.weights[self._at] = round(value * NS)

    def __delitem__(self, key: str) -> None:
        raise ParameterError(
            f"The {key} of an edge cannot be changed; set its weight to 0 instead."
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._KEYS)

    def __len__(self) -> int:
        return len(self._KEYS)
