"""A replay as arrays: the dependency graph, and what its nodes take in a scenario."""

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
        is_operation: Whether it is a device operation; otherwise it is a call in which the host waits.
        key: Time of the node in a topological order of operations [ns].
        returned: End of the launch or call [ns]; NaN without a launch.
        line: Number of the host: of a rank's recording, from 0.
        host_place: Position in the order of the host, from 1; 0 without a launch.
        awaited: Operation that the launch or call waits for; -1: none.
        first: Where the node's waits begin in `waits`; one entry more than nodes.
        waits: Operations that operations wait for; in the order of the nodes that wait.
        after: From the awaited operation to the return of the call [ns]; NaN: the host works after it.
        launch_gap: From the return of a launch to the start of its operation [ns].
        early: Start of an operation without any dependency before the line's begin, not above 0 [ns].
        collective: Number of the collective, from 0; -1: none.
        begin: Begin of each line [ns]; one entry a line.
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
        own: Duration of operations.
        host: Work of the host before launches and calls.
        gap: Delay of operations after their dependencies.
        lag: From the last start of a collective to its end on this rank.
        begin: Begin of each line; one entry a line, None: as recorded.
        meets: Ranks wait for each other in collectives.
    """

    own: Floats
    host: Floats
    gap: Floats
    lag: Floats
    begin: Floats | None = None
    meets: bool = True
