-- Predicted time of a run in each scenario, from a replay of its dependency graph.
--
-- The rows come from one sequential pass over the nodes and edges that this statement names. A set-based query cannot
-- express such a pass, so the rows are computed when the store is materialized; until then, there are none.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO derived.replays_v1(
    runs
) AS TABLE
-- Columns: those of replays.
WITH
    nodes AS (
        SELECT n.* FROM lib.replay_nodes(runs) AS n
    ),
    edges AS (
        SELECT e.* FROM lib._replay_edges('nodes') AS e
    ),
    weights AS (
        SELECT w.* FROM lib.replay_weights('nodes', 'edges') AS w
    ),
    stragglers AS (
        SELECT s.* FROM lib._replay_stragglers(runs) AS s
    )
SELECT
    v.run, NULL::VARCHAR AS scenario, NULL::VARCHAR AS part_kind, NULL::VARCHAR AS part, NULL::BIGINT AS recorded_ns,
    NULL::BIGINT AS replayed_ns, NULL::BIGINT AS low_ns, NULL::BIGINT AS high_ns, NULL::VARCHAR AS changed_ranks,
    NULL::BIGINT AS node_count, NULL::BIGINT AS free_host_count
FROM lib.replay_values('nodes', 'weights', 'stragglers') AS v
WHERE false
