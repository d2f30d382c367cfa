-- Edges of a critical path graph on the device: along each operation, from its launch, and from the previous
-- operation on its stream.
--
-- - operator: along an operation; if it still runs when the next operation on its stream starts, only until then (HTA
--   counts both in full, Q55).
-- - kernel_launch_delay: from the start of a call to the operation that it launched, if the stream was idle at that
--   start.
-- - kernel_kernel_delay: otherwise, from the end of the operation that ended last on the stream to the next operation,
--   unless the next operation starts after a wait for another stream.
CREATE OR REPLACE MACRO lib._path_stream_edges(
    -- Name of a relation with the columns of lib._path_device_ops.
    device_ops,
    -- Name of a relation with the columns of lib._path_sync_edges.
    sync_edges,
    -- Whether every device operation depends on its launch, with weight 0, even without a delay edge.
    include_launch_edges
) AS TABLE
-- Columns:
--   run             VARCHAR      Run name.
--   rank            INTEGER      Rank of the process.
--   begin_node_id   BIGINT       Node that must complete first.
--   end_node_id     BIGINT       Node that depends on it.
--   edge_type       VARCHAR      Type of the edge: operator, kernel_launch_delay or kernel_kernel_delay.
--   weight          BIGINT [ns]  Duration of the edge.
--   begin_event_id  BIGINT       event_id of the first node.
--   end_event_id    BIGINT       event_id of the second node.
--   event_id        BIGINT       event_id of the event that the duration belongs to; NULL for launch delays.
--   class           VARCHAR      Class of the device operation of the edge; NULL for delays.
WITH
    _last_sync AS (
        SELECT s.run, s.rank, s.end_event_id, max(s.sync_ts) AS sync_ts
        FROM query_table(sync_edges) AS s
        WHERE s.sync_ts IS NOT NULL
        GROUP BY s.run, s.rank, s.end_event_id
    ),
    -- The operation that ended last on the stream before each start. A window instead of an ASOF join, for which the
    -- engine may choose nested loops over all pairs.
    _ended AS (
        SELECT
            m.run, m.rank, m.event_id, m.is_start,
            last_value(m.ended IGNORE NULLS) OVER (
                PARTITION BY m.run, m.rank, m.span, m.device, m.stream ORDER BY m.node_id ROWS UNBOUNDED PRECEDING
            ) AS ended
        FROM (
            SELECT s.run, s.rank, s.span, s.device, s.stream, s.event_id, true AS is_start, s.start_node_id AS node_id, NULL AS ended
            FROM query_table(device_ops) AS s
            UNION ALL
            SELECT
                e.run, e.rank, e.span, e.device, e.stream, e.event_id, false, e.end_node_id,
                {'event_id': e.event_id, 'node_id': e.end_node_id, 'ts': e.end_ts}
            FROM query_table(device_ops) AS e
        ) AS m
    ),
    -- Predecessors of each operation on its stream: the operation that ended last and, if the operation starts while
    -- the previous one still runs (programmatic launches, graph branches), the previous one.
    _successions AS MATERIALIZED (
        SELECT o.*, p.ended.event_id AS ended_id, p.ended.node_id AS ended_node_id, p.ended.ts AS ended_ts
        FROM (
            SELECT
                s.*,
                lag({'id': s.event_id, 'start_node_id': s.start_node_id, 'end_node_id': s.end_node_id, 'ts': s.start_ts, 'class': s.class}) OVER (
                    PARTITION BY s.run, s.rank, s.span, s.device, s.stream ORDER BY s.start_node_id
                ) AS before
            FROM query_table(device_ops) AS s
        ) AS o
        JOIN _ended AS p ON p.run = o.run AND p.rank = o.rank AND p.event_id = o.event_id AND p.is_start
    ),
    -- An operation starts after the latest of its predecessors, its launch, and the awaited operations on other
    -- streams.
    _starts AS (
        SELECT
            s.*, y.sync_ts,
            coalesce(s.before.end_node_id > s.start_node_id, false) AS overlaps,
            CASE WHEN s.before.end_node_id > s.start_node_id THEN s.before.ts ELSE s.ended_ts END AS stream_ts,
            coalesce(s.launch_node_id < s.start_node_id AND greatest(stream_ts, y.sync_ts) < s.launch_ts, s.launch_node_id < s.start_node_id) AS is_launch_bound,
            coalesce(y.sync_ts >= stream_ts, false) AS is_sync_bound
        FROM _successions AS s
        LEFT JOIN _last_sync AS y ON y.run = s.run AND y.rank = s.rank AND y.end_event_id = s.event_id
    )
SELECT
    o.run, o.rank, o.start_node_id AS begin_node_id, o.end_node_id AS end_node_id, 'operator' AS edge_type, o.end_ts - o.start_ts AS weight,
    o.event_id AS begin_event_id, o.event_id AS end_event_id, o.event_id, o.class
FROM query_table(device_ops) AS o
UNION ALL
SELECT s.run, s.rank, s.launch_node_id, s.start_node_id, 'kernel_launch_delay', CASE WHEN s.is_launch_bound THEN s.start_ts - s.launch_ts ELSE 0 END, s.launch_id, s.event_id, NULL, NULL
FROM _starts AS s
WHERE s.is_launch_bound OR (include_launch_edges AND s.launch_node_id < s.start_node_id)
UNION ALL
SELECT s.run, s.rank, s.ended_node_id, s.start_node_id, 'kernel_kernel_delay', s.start_ts - s.ended_ts, s.ended_id, s.event_id, s.ended_id, NULL
FROM _starts AS s
WHERE s.ended_node_id IS NOT NULL AND NOT s.overlaps AND NOT s.is_launch_bound AND NOT s.is_sync_bound
UNION ALL
SELECT s.run, s.rank, s.before.start_node_id, s.start_node_id, 'operator', s.start_ts - s.before.ts, s.before.id, s.event_id, s.before.id, s.before.class
FROM _starts AS s
WHERE s.overlaps AND NOT s.is_launch_bound AND NOT s.is_sync_bound
