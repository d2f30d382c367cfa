-- Time for which a rank's critical path runs through communication kernels.
--
-- The path is followed backwards from the rank's last node: each node was delayed by its dependency that ended last.
-- The path therefore has one position at each instant, unlike the path with the largest sum of weights. Its nodes are
-- found by doubling: after k iterations, each node knows the node 2^k before it, and the first 2^k nodes of the path
-- are known. A trace without waits between streams shows no path on the device.
CREATE OR REPLACE MACRO lib._blocking_stretches(
    runs,
    ranks,
    steps,
    include_last_profiler_step
) AS TABLE
-- Columns:
--   run         VARCHAR      Run name.
--   rank        INTEGER      Rank of the process.
--   event_id    BIGINT       event_id of a communication kernel with a node; no rows without waits between streams.
--   on_path_ns  BIGINT [ns]  Time for which the path runs through the kernel, from its start; NULL if the kernel is not on the path.
WITH RECURSIVE
    _edges AS MATERIALIZED (
        SELECT
            e.run, e.rank, (dense_rank() OVER (ORDER BY e.run, e.rank)) << 40 AS lane, e.begin_node_id, e.end_node_id, e.weight_ns AS weight,
            CASE WHEN e.bound_by = 'gpu_communication_bound' THEN e.event_id END AS event_id
        FROM lib.critical_path_edges(runs, ranks, steps, include_last_profiler_step, NULL, 0, NULL, NULL, true, true) AS e
    ),
    -- Node numbers follow time, so the dependency that ended last has the largest number.
    _tree AS MATERIALIZED (
        SELECT e.lane + e.end_node_id AS node, max(e.lane + e.begin_node_id) AS before
        FROM _edges AS e
        GROUP BY node
    ),
    _last AS (
        SELECT max(e.lane + e.end_node_id) AS node FROM _edges AS e GROUP BY e.lane
    ),
    _walk AS (
        SELECT t.node, t.before, l.node IS NOT NULL AS is_on
        FROM _tree AS t
        LEFT JOIN _last AS l ON l.node = t.node
        UNION ALL
        SELECT w.node, b.before, w.is_on OR r.node IS NOT NULL
        FROM _walk AS w
        LEFT JOIN _walk AS b ON b.node = w.before
        LEFT JOIN (SELECT x.before AS node FROM _walk AS x WHERE x.is_on AND x.before IS NOT NULL) AS r ON r.node = w.node
        WHERE EXISTS (SELECT 1 FROM _walk AS y WHERE y.is_on AND y.before IS NOT NULL)
    ),
    _path AS (
        SELECT DISTINCT w.node FROM _walk AS w WHERE w.is_on
    ),
    _with_waits AS (
        SELECT c.run, c.rank
        FROM runtime_calls AS c
        WHERE replace(lower(c.name), '_', '') LIKE '%streamwaitevent%' AND lib.is_requested(runs, c.run) AND lib.is_requested(ranks, c.rank)
        UNION
        SELECT g.run, g.rank
        FROM gpu_ops AS g
        WHERE g.class = 'sync' AND lower(g.sync_kind) = 'stream wait event' AND lib.is_requested(runs, g.run) AND lib.is_requested(ranks, g.rank)
    )
SELECT
    e.run, e.rank, e.event_id,
    max(CASE WHEN p.node IS NOT NULL THEN e.weight END)::BIGINT AS on_path_ns
FROM _edges AS e
JOIN _tree AS t ON t.node = e.lane + e.end_node_id
LEFT JOIN _path AS p ON p.node = t.node AND t.before = e.lane + e.begin_node_id
SEMI JOIN _with_waits AS c ON c.run = e.run AND c.rank = e.rank
WHERE e.event_id IS NOT NULL
GROUP BY e.run, e.rank, e.event_id
