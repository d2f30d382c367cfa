-- Edges of the critical path graph between given nodes.
--
-- - operator: along a host thread inside operators, and along a device operation.
-- - dependency (weight 0): from one outermost operator of a thread to the next. Also from a thread to the thread that
--   runs its backward pass and back, when one continues while the other is inactive. Also between overlapping launch
--   calls of two threads, in the order in which they return.
-- - kernel_launch_delay: from the start of a call to the operation that it launched, if the stream was idle at that
--   start.
-- - kernel_kernel_delay: otherwise, from the end of the operation that ended last on the stream. If the previous
--   operation is still running when the next one starts, only its time up to that start counts as operator (HTA counts
--   both in full, Q55).
-- - sync_dependency (weight 0): from a device operation to the call that waits for it, or to the first operation of a
--   stream after a wait for it. The last part of a waiting call has no weight.
--
-- A delay during at least half of which the device ran work that is not in the trace (`unrecorded_time`) is bound by
-- that work: unrecorded.
CREATE OR REPLACE MACRO lib.edges_between(
    -- Name of a relation with the columns of lib.critical_path_nodes; depth is optional.
    path_nodes,
    runs,
    ranks,
    -- Whether every device operation depends on its launch, with weight 0, even without a delay edge.
    include_launch_edges,
    -- Whether to infer unrecorded waits from the operations that ended during them.
    infer_syncs
) AS TABLE
-- Columns: those of critical_path_edges_v1.
WITH
    _device_ops AS MATERIALIZED (
        SELECT o.* FROM lib._path_device_ops(path_nodes) AS o
    ),
    _sync_edges AS MATERIALIZED (
        SELECT s.* FROM lib._path_sync_edges(path_nodes, '_device_ops', runs, ranks, infer_syncs) AS s
    ),
    _edges AS (
        SELECT t.*, NULL::VARCHAR AS class
        FROM lib._path_thread_edges(path_nodes, runs, ranks) AS t
        UNION ALL
        SELECT d.*
        FROM lib._path_stream_edges('_device_ops', '_sync_edges', include_launch_edges) AS d
        UNION ALL
        SELECT s.run, s.rank, s.begin_node_id, s.end_node_id, 'sync_dependency', 0, s.begin_event_id, s.end_event_id, NULL, NULL
        FROM _sync_edges AS s
    ),
    _unrecorded AS (
        SELECT a.run, a.rank, a.begin_node_id, a.end_node_id
        FROM _edges AS a
        JOIN query_table(path_nodes) AS n ON n.run = a.run AND n.rank = a.rank AND n.node_id = a.end_node_id
        JOIN unrecorded_time AS u ON u.run = a.run AND u.rank = a.rank AND u.ts < n.ts AND u.ts + u.dur > n.ts - a.weight
        WHERE u.kind <> 'undecided' AND a.edge_type IN ('kernel_launch_delay', 'kernel_kernel_delay')
        GROUP BY a.run, a.rank, a.begin_node_id, a.end_node_id, a.weight
        HAVING 2 * sum(least(n.ts, u.ts + u.dur) - greatest(n.ts - a.weight, u.ts)) >= a.weight
    ),
    _data_loads AS (
        SELECT n.run, n.rank, n.event_id
        FROM query_table(path_nodes) AS n
        WHERE n.kind = 'data_load' AND n.is_start
    )
SELECT
    a.run,
    a.rank,
    a.begin_node_id,
    a.end_node_id,
    a.edge_type,
    a.weight::BIGINT AS weight_ns,
    a.begin_event_id,
    a.end_event_id,
    a.event_id,
    CASE
        WHEN u.end_node_id IS NOT NULL THEN 'unrecorded'
        WHEN a.edge_type = 'kernel_launch_delay' THEN 'gpu_kernel_launch_overhead'
        WHEN a.edge_type = 'kernel_kernel_delay' THEN 'gpu_kernel_kernel_overhead'
        WHEN a.event_id IS NULL THEN NULL
        WHEN a.class = 'communication' THEN 'gpu_communication_bound'
        WHEN a.class IS NOT NULL THEN 'gpu_compute_bound'
        WHEN d.event_id IS NOT NULL THEN 'data_loading'
        ELSE 'cpu_bound'
    END AS bound_by
FROM _edges AS a
LEFT JOIN _unrecorded AS u
    ON u.run = a.run AND u.rank = a.rank AND u.begin_node_id = a.begin_node_id AND u.end_node_id = a.end_node_id
    AND a.edge_type IN ('kernel_launch_delay', 'kernel_kernel_delay')
LEFT JOIN _data_loads AS d ON d.run = a.run AND d.rank = a.rank AND d.event_id = a.event_id
