-- Edges of a critical path graph from a device operation to the host call or stream that waits for it.
--
-- A waiting stream is represented by its first operation after the wait.
--
-- Edges come from recorded waits (enable_cuda_sync_events=True). For waits that are not recorded, infer_syncs adds
-- edges from operations that ended while a call waited.
CREATE OR REPLACE MACRO lib._path_sync_edges(
    -- Name of a relation with the columns of lib.critical_path_nodes.
    path_nodes,
    -- Name of a relation with the columns of lib._path_device_ops.
    device_ops,
    runs,
    ranks,
    -- Whether to infer unrecorded waits from the operations that ended during them.
    infer_syncs
) AS TABLE
-- Columns:
--   run             VARCHAR      Run name.
--   rank            INTEGER      Rank of the process.
--   begin_node_id   BIGINT       End of the awaited device operation.
--   end_node_id     BIGINT       Return of the waiting call, or start of the waiting operation.
--   begin_event_id  BIGINT       event_id of the awaited device operation.
--   end_event_id    BIGINT       event_id of the waiting call or operation.
--   sync_ts         BIGINT [ns]  For a waiting stream, the end of the awaited operation; NULL for a waiting call.
WITH
    -- Host calls, by the node of their return.
    _calls AS MATERIALIZED (
        SELECT n.run, n.rank, n.event_id, n.ts AS start_ts, n.node_id AS end_node_id, n.is_blocking, n.takes_lock
        FROM query_table(path_nodes) AS n
        WHERE n.kind <> 'gpu' AND NOT n.is_start
    ),
    -- Operations enqueued on each stream at the same time. If a graph launch enqueues several, they are reduced to the
    -- first start and the last end.
    _enqueued AS MATERIALIZED (
        SELECT
            o.run, o.rank, o.span, o.device, o.stream, o.launch_ts,
            arg_min({'id': o.event_id, 'node': o.start_node_id}, o.start_node_id) AS first_op,
            arg_max({'id': o.event_id, 'node': o.end_node_id, 'ts': o.end_ts}, o.end_node_id) AS last_op
        FROM query_table(device_ops) AS o
        GROUP BY o.run, o.rank, o.span, o.device, o.stream, o.launch_ts
    ),
    -- Recorded waits, with the waiting call, the awaited stream and the correlation id of the call that recorded the
    -- event.
    _sync_calls AS MATERIALIZED (
        SELECT
            g.run, g.rank, coalesce(g.device, -1) AS device, g.stream, g.launch_id AS call_id, g.launch_ts AS call_ts,
            lower(coalesce(g.sync_kind, g.name)) AS what, g.wait_on_stream, g.wait_on_record_correlation
        FROM gpu_ops AS g
        WHERE
            g.class = 'sync'
            AND g.launch_id IS NOT NULL
            AND lib.is_requested(runs, g.run)
            AND lib.is_requested(ranks, g.rank)
    ),
    _syncs AS (
        SELECT s.*, r.ts AS recorded_ts
        FROM _sync_calls AS s
        LEFT JOIN runtime_calls AS r
            ON r.run = s.run AND r.rank = s.rank AND lib.span_of(r.event_id) = lib.span_of(s.call_id) AND r.correlation = s.wait_on_record_correlation AND r.event_id <> s.call_id
    ),
    _streams AS (
        SELECT DISTINCT q.run, q.rank, q.device, q.stream
        FROM _enqueued AS q
    ),
    -- Each wait, with the awaited stream and the time up to which operations on that stream are awaited.
    _waits AS (
        SELECT s.run, s.rank, s.device, s.stream AS own_stream, s.call_id, s.call_ts, s.what, s.stream AS awaited_stream, s.call_ts AS until_ts
        FROM _syncs AS s
        WHERE s.what = 'stream sync'
        UNION ALL
        SELECT s.run, s.rank, s.device, NULL, s.call_id, s.call_ts, s.what, t.stream, s.call_ts
        FROM _syncs AS s
        JOIN _streams AS t ON t.run = s.run AND t.rank = s.rank AND t.device = s.device
        WHERE s.what = 'context sync'
        UNION ALL
        SELECT s.run, s.rank, s.device, s.stream, s.call_id, s.call_ts, s.what, s.wait_on_stream, s.recorded_ts
        FROM _syncs AS s
        WHERE s.what IN ('event sync', 'stream wait event') AND s.recorded_ts IS NOT NULL
    ),
    _awaited AS MATERIALIZED (
        SELECT w.*, q.last_op
        FROM _waits AS w
        ASOF JOIN _enqueued AS q
            ON q.run = w.run AND q.rank = w.rank AND q.span = lib.span_of(w.call_id) AND q.device = w.device AND q.stream = w.awaited_stream AND w.until_ts > q.launch_ts
    ),
    -- If the wait of a call is not recorded, the call waits for the operation that ended last during the call,
    -- provided that this operation was launched before the call.
    _recorded_calls AS (
        SELECT DISTINCT s.run, s.rank, s.call_id
        FROM _sync_calls AS s
    ),
    _silent_calls AS (
        SELECT s.run, s.rank, s.event_id, s.start_ts, s.end_node_id
        FROM _calls AS s
        ANTI JOIN _recorded_calls AS c ON c.run = s.run AND c.rank = s.rank AND c.call_id = s.event_id
        WHERE infer_syncs AND s.is_blocking AND NOT s.takes_lock
    ),
    -- The operation that ended last before each return, by a window, because nested loops may be chosen for ASOF joins.
    _returns AS (
        SELECT
            m.run, m.rank, m.event_id, m.start_ts, m.node_id,
            last_value(m.ended IGNORE NULLS) OVER (PARTITION BY m.run, m.rank, m.span ORDER BY m.node_id ROWS UNBOUNDED PRECEDING) AS ended
        FROM (
            SELECT c.run, c.rank, lib.span_of(c.event_id) AS span, c.event_id, c.start_ts, c.end_node_id AS node_id, NULL AS ended
            FROM _silent_calls AS c
            UNION ALL
            SELECT
                o.run, o.rank, o.span, NULL, NULL, o.end_node_id,
                {'event_id': o.event_id, 'node_id': o.end_node_id, 'ts': o.end_ts, 'launch_ts': o.launch_ts}
            FROM query_table(device_ops) AS o
        ) AS m
    ),
    _inferred AS (
        SELECT r.run, r.rank, r.ended.node_id AS begin_node_id, r.node_id AS end_node_id, r.ended.event_id AS begin_event_id, r.event_id AS end_event_id
        FROM _returns AS r
        WHERE r.event_id IS NOT NULL AND r.ended.ts >= r.start_ts AND r.ended.launch_ts < r.start_ts
    ),
    -- An unrecorded wait of a stream applies to the operation that the same thread launched next (the first to start,
    -- if one call launches many). That operation waits for the last operation that had ended on the device when it
    -- started, provided that the awaited operation is on another stream and was launched before the wait.
    _silent_waits AS (
        SELECT c.run, c.rank, c.span, c.pid, c.tid, c.ts
        FROM runtime_calls AS c
        ANTI JOIN _recorded_calls AS r ON r.run = c.run AND r.rank = c.rank AND r.call_id = c.event_id
        WHERE
            infer_syncs
            AND regexp_matches(c.name, 'stream_?wait_?event', 'i')
            AND lib.is_requested(runs, c.run)
            AND lib.is_requested(ranks, c.rank)
    ),
    _first_ops AS (
        SELECT DISTINCT ON (o.run, o.rank, o.launch_pid, o.launch_tid, o.launch_ts) o.*
        FROM query_table(device_ops) AS o
        ORDER BY o.run, o.rank, o.launch_pid, o.launch_tid, o.launch_ts, o.launch_node_id, o.start_node_id
    ),
    _waiting_ops AS (
        SELECT DISTINCT ON (o.run, o.rank, o.event_id) o.*, w.ts AS waited_ts
        FROM _silent_waits AS w
        ASOF JOIN _first_ops AS o
            ON o.run = w.run AND o.rank = w.rank AND o.span = w.span AND o.launch_pid = w.pid AND o.launch_tid = w.tid AND w.ts < o.launch_ts
        ORDER BY o.run, o.rank, o.event_id, w.ts DESC
    ),
    _inferred_waits AS (
        SELECT w.run, w.rank, o.end_node_id AS begin_node_id, w.start_node_id AS end_node_id, o.event_id AS begin_event_id, w.event_id AS end_event_id, o.end_ts AS sync_ts
        FROM _waiting_ops AS w
        ASOF JOIN query_table(device_ops) AS o ON o.run = w.run AND o.rank = w.rank AND o.span = w.span AND o.device = w.device AND w.start_node_id > o.end_node_id
        WHERE o.stream <> w.stream AND o.launch_ts < w.waited_ts
    ),
    _call_syncs AS (
        SELECT a.run, a.rank, a.last_op.node AS begin_node_id, c.end_node_id AS end_node_id, a.last_op.id AS begin_event_id, a.call_id AS end_event_id
        FROM _awaited AS a
        JOIN _calls AS c ON c.run = a.run AND c.rank = a.rank AND c.event_id = a.call_id
        WHERE a.what <> 'stream wait event'
        UNION ALL
        -- A call waits for its copy if the copy had ended when the call returned.
        SELECT o.run, o.rank, o.end_node_id, o.returned_node_id, o.event_id, o.launch_id
        FROM query_table(device_ops) AS o
        WHERE o.is_awaited
        UNION ALL
        SELECT i.*
        FROM _inferred AS i
    ),
    _stream_syncs AS (
        SELECT DISTINCT
            a.run, a.rank, a.last_op.node AS begin_node_id, q.first_op.node AS end_node_id,
            a.last_op.id AS begin_event_id, q.first_op.id AS end_event_id, a.last_op.ts AS sync_ts
        FROM _awaited AS a
        ASOF JOIN _enqueued AS q
            ON q.run = a.run AND q.rank = a.rank AND q.span = lib.span_of(a.call_id) AND q.device = a.device AND q.stream = a.own_stream AND a.call_ts < q.launch_ts
        -- A stream always waits for itself.
        WHERE a.what = 'stream wait event' AND a.own_stream <> a.awaited_stream AND a.last_op.node < q.first_op.node
        UNION
        SELECT i.*
        FROM _inferred_waits AS i
    )
SELECT DISTINCT c.run, c.rank, c.begin_node_id, c.end_node_id, c.begin_event_id, c.end_event_id, NULL::BIGINT AS sync_ts
FROM _call_syncs AS c
WHERE c.begin_node_id < c.end_node_id
UNION ALL
SELECT s.run, s.rank, s.begin_node_id, s.end_node_id, s.begin_event_id, s.end_event_id, s.sync_ts
FROM _stream_syncs AS s
