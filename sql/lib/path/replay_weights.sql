-- Duration of each node of a replay, and its delay after its dependencies.
--
-- The delay is counted from the launch or from the dependencies, whichever came last. If the dependencies ended last,
-- the delay after the launch is at most 0.3 usual lengths of a launch (`launch_ns`, about 5 us on GPUs); if the launch
-- returned last, the delay after the dependencies is at most 0.2 of them. Without a change, the weights reproduce every recorded time.
CREATE OR REPLACE MACRO lib.replay_weights(
    -- Name of a relation with the columns of lib.replay_nodes.
    replay_nodes,
    -- Name of a relation with the columns of lib._replay_edges.
    replay_edges
) AS TABLE
-- Columns:
--   run              VARCHAR      Run name.
--   node_id          BIGINT       Node.
--   host_place       BIGINT [1]   Position of the launch or call in the order of the rank's host, from 1; NULL if the launch is not in the trace.
--   awaited_id       BIGINT       Operation that the launch or call waits for; NULL if the host does not wait.
--   own_ns           BIGINT [ns]  Duration of an operation.
--   host_ns          DOUBLE [ns]  Host work up to the return of the launch or call, without waiting; NULL if the launch is not in the trace.
--   after_ns         DOUBLE [ns]  Time from the end of the awaited operation to the return of the call; NULL for a launch, whose host_ns does not include waiting.
--   gap_ns           DOUBLE [ns]  Time from the end of an operation's dependencies to its start; if the operation has neither dependencies nor a launch, time from begin_ns.
--   launch_gap_ns    DOUBLE [ns]  Time from the return of an operation's launch to its start.
WITH
    _hosts AS (
        SELECT n.run, n.node_id, row_number() OVER line AS host_place, lag(n.return_ns) OVER line AS before_ns
        FROM query_table(replay_nodes) AS n
        WHERE n.return_ns IS NOT NULL
        WINDOW line AS (PARTITION BY n.run, n.rank, n.span ORDER BY n.return_ns, n.call_ns, n.node_id)
    ),
    _from AS (
        SELECT
            e.run, e.node_id, max(f.end_ns) FILTER (e.edge_type <> 'host') AS ready_ns,
            arg_max(e.from_id, f.end_ns) FILTER (e.edge_type = 'host') AS awaited_id, max(f.end_ns) FILTER (e.edge_type = 'host') AS awaited_ns
        FROM query_table(replay_edges) AS e
        JOIN query_table(replay_nodes) AS f ON f.run = e.run AND f.node_id = e.from_id
        GROUP BY e.run, e.node_id
    )
SELECT
    n.run, n.node_id, h.host_place, f.awaited_id,
    CASE WHEN n.kind = 'operation' THEN n.end_ns - n.start_ns ELSE 0 END AS own_ns,
    CASE
        WHEN n.return_ns IS NULL THEN NULL
        WHEN n.kind = 'operation' THEN greatest(0, n.return_ns - greatest(coalesce(h.before_ns, least(n.begin_ns, n.return_ns)), f.awaited_ns))
        WHEN f.awaited_ns > n.call_ns
            THEN greatest(0, n.call_ns - coalesce(h.before_ns, least(n.begin_ns, n.call_ns))) + least(0.6::DOUBLE * n.launch_ns, n.return_ns - n.call_ns)
        ELSE greatest(0, n.return_ns - coalesce(h.before_ns, least(n.begin_ns, n.return_ns)))
    END AS host_ns,
    CASE
        WHEN n.kind = 'operation' THEN NULL
        WHEN f.awaited_ns > n.call_ns THEN greatest(0, n.return_ns - f.awaited_ns)
        ELSE least(2::DOUBLE * n.launch_ns, n.return_ns - n.call_ns)
    END AS after_ns,
    CASE
        WHEN n.kind <> 'operation' THEN 0
        WHEN f.ready_ns IS NULL THEN CASE WHEN n.return_ns IS NULL THEN greatest(0, n.start_ns - n.begin_ns) ELSE 0 END
        WHEN n.return_ns IS NULL OR n.return_ns < f.ready_ns THEN greatest(0, n.start_ns - f.ready_ns)
        ELSE least(0.2::DOUBLE * n.launch_ns, greatest(0, n.start_ns - f.ready_ns))
    END AS gap_ns,
    CASE
        WHEN n.kind <> 'operation' OR n.return_ns IS NULL THEN 0
        WHEN f.ready_ns IS NULL OR n.return_ns >= f.ready_ns THEN n.start_ns - n.return_ns
        ELSE least(0.3::DOUBLE * n.launch_ns, n.start_ns - n.return_ns)
    END AS launch_gap_ns
FROM query_table(replay_nodes) AS n
LEFT JOIN _from AS f ON f.run = n.run AND f.node_id = n.node_id
LEFT JOIN _hosts AS h ON h.run = n.run AND h.node_id = n.node_id
