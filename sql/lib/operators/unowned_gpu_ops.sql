-- Device activity that no operator launched, labelled as a graph replay or as [no operator].
--
-- A replay is a single call that starts many kernels; the operators that put them into the graph ran during its
-- capture. A replay launched by an operator belongs to the operator. Kernels without a launch in the trace have no
-- operator.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib.unowned_gpu_ops(
    -- Runs to include; NULL means every run.
    runs,
    -- Ranks to include; NULL means every rank.
    ranks
) AS TABLE
-- Columns:
--   run       VARCHAR  Run name.
--   rank      INTEGER  Rank of the process.
--   event_id  BIGINT   Position of the event in traceEvents.
--   label     VARCHAR  [graph replay] or [no operator].
WITH
    _replays AS (
        SELECT c.run, c.rank, c.event_id
        FROM runtime_calls AS c
        WHERE contains(c.name, 'GraphLaunch') AND lib.is_requested(runs, c.run) AND lib.is_requested(ranks, c.rank)
    )
SELECT
    g.run AS run, g.rank AS rank, g.event_id AS event_id,
    CASE WHEN r.run IS NOT NULL OR g.graph_id > 0 OR g.graph_node_id > 0 THEN '[graph replay]' ELSE '[no operator]' END AS label
FROM gpu_ops AS g
LEFT JOIN _replays AS r ON r.run = g.run AND r.rank = g.rank AND r.event_id = g.launch_id
WHERE g.op_id IS NULL AND lib.is_requested(runs, g.run) AND lib.is_requested(ranks, g.rank)
