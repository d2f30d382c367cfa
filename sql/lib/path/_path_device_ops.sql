-- Device operations of a critical path graph with their two nodes and their launching call.
CREATE OR REPLACE MACRO lib._path_device_ops(
    -- Name of a relation with the columns of lib.critical_path_nodes.
    path_nodes
) AS TABLE
-- Columns:
--   run            VARCHAR      Run name.
--   rank           INTEGER      Rank of the process.
--   span           INTEGER      Recording of the rank.
--   event_id       BIGINT       Position of the operation in traceEvents.
--   class          VARCHAR      Class of the operation.
--   device         BIGINT       Device number, -1 if unknown.
--   stream         BIGINT       Device stream, -1 if unknown.
--   start_ts       BIGINT [ns]  Start of the operation.
--   end_ts         BIGINT [ns]  End of the operation.
--   start_node_id     BIGINT       Node of the operation's start.
--   end_node_id       BIGINT       Node of the operation's end.
--   launch_id      BIGINT       event_id of the launching call.
--   launch_pid     BIGINT       Process id of the launching call.
--   launch_tid     BIGINT       Thread id of the launching call.
--   launch_ts      BIGINT [ns]  Start of the launching call.
--   launch_node_id    BIGINT       Node of the launching call's start.
--   returned_node_id  BIGINT       Node of the launching call's end.
--   is_awaited     BOOLEAN      Whether the launching call waits for the device.
WITH
    -- Grouping puts both nodes of each event into one row. In a join of three tables on run, rank and event, the
    -- engine might join two of the tables on run and rank alone.
    _spans AS MATERIALIZED (
        SELECT
            n.run, n.rank, n.event_id, n.kind, n.class, n.pid, n.tid, n.device, n.stream, n.launch_id, n.is_blocking, n.takes_lock,
            n.ts AS start_ts, n.ts + n.dur AS end_ts, min(n.node_id) AS start_node_id, max(n.node_id) AS end_node_id
        FROM query_table(path_nodes) AS n
        -- takes_lock is true for every call that launched an operation.
        WHERE n.kind = 'gpu' OR n.takes_lock
        GROUP BY ALL
    )
SELECT
    o.run, o.rank, lib.span_of(o.event_id) AS span, o.event_id, o.class, o.device, o.stream, o.start_ts, o.end_ts, o.start_node_id, o.end_node_id,
    o.launch_id, l.pid AS launch_pid, l.tid AS launch_tid, l.start_ts AS launch_ts, l.start_node_id AS launch_node_id,
    l.end_node_id AS returned_node_id, l.is_blocking AS is_awaited
FROM _spans AS o
JOIN _spans AS l ON l.run = o.run AND l.rank = o.rank AND l.event_id = o.launch_id
WHERE o.kind = 'gpu'
