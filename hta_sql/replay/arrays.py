"""Arrays of a replay: the dependency graph, and the durations of its nodes in a scenario."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Graph:
    """Nodes of a replay and their dependencies; one entry per node unless stated otherwise.

    Attributes:
        is_operation: Whether the node is a device operation; otherwise it is a blocking host call.
        key: Sort key that puts operations in a topological order [ns].
        returned: End of the launch or call [ns]; NaN without a launch.
        line: Index of the host timeline (one per recording of a rank), from 0.
        host_place: Position on the host timeline, from 1; 0 without a launch.
        awaited: Operation that the launch or call waits for, or -1.
        first: Offset of the node's dependencies in `waits`; one entry more than there are nodes.
        waits: Operations that each operation waits for, grouped by the waiting node.
        after: Time from the end of the awaited operation to the return of the call [ns]; NaN if the
            host does other work in between.
        launch_gap: Time from the return of a launch to the start of its operation [ns].
        early: Start of the node relative to the start of its host timeline if earlier, else 0 [ns].
        collective: Index of the collective, from 0, or -1.
        begin: Start of each host timeline [ns]; one entry per timeline.
    """

    is_operation: Flags
    key: Floats
    returned: Floats
    line: Ints
    host_place: Ints
    awaited: Ints
    first: Ints
    waits: Ints
    after: Floats
    launch_gap: Floats
    early: Floats
    collective: Ints
    begin: Floats

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self.is_operation)


@dataclass(frozen=True)
class Durations:
    """Durations of nodes in one scenario [ns]; one entry per node unless stated otherwise.

    Attributes:
        own: Duration of each operation.
        host: Host work before each launch or call.
        gap: Delay between the end of the dependencies and the start of each operation.
        lag: Time from the last start of a collective on any rank to its end on this rank.
        begin: Start of each host timeline, one entry per timeline; None: as recorded.
        meets: Whether ranks wait for each other in collectives.
    """

    own: Floats
    host: Floats
    gap: Floats
    lag: Floats
    begin: Floats | None = None
    meets: bool = True
