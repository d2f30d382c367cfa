-- Move device activity and the task queue of an Ascend trace from other_events to the tables used for other vendors.

-- name: by_ascend
-- Numbers of the staged traces that the Ascend profiler wrote.
SELECT DISTINCT part_of(o.event_id)
FROM staged_other_events AS o
WHERE o.phase = 'M' AND o.name = 'process_name' AND o.args ->> '$.name' = 'Ascend Hardware';

-- name: device_events
-- Device activity of an Ascend trace (`trace_view.json`), found by process name because its events have no category.
--
-- The process "Ascend Hardware" contains the tasks of each stream. The process "HCCL" ("Communication" since 2025)
-- contains one event per collective, on a thread named "Group N Communication". A collective consists of tasks (copies,
-- reductions, notifications) on streams of its own. A stream belongs to collectives if no arrow from the host ends on
-- it, and if it has a notification or a task with the connection id of a collective. Only the collective is moved; its
-- tasks stay in other_events. A trace without collectives has no such streams.
--
-- The profiler sets pid to process << 10 | row << 5 | device. The stream of a collective is the lowest stream that has
-- a task with the connection id of the collective.
CREATE OR REPLACE TABLE ascend_device_events AS
WITH
    names AS (
        SELECT o.pid, o.tid, o.name AS kind, o.args ->> '$.name' AS name
        FROM staged_other_events AS o
        WHERE o.phase = 'M' AND o.name IN ('process_name', 'thread_name')
    ),
    device_processes AS (
        SELECT DISTINCT n.pid, n.name = 'Ascend Hardware' AS is_hardware
        FROM names AS n
        WHERE n.kind = 'process_name' AND n.name IN ('Ascend Hardware', 'HCCL', 'Communication')
    ),
    events AS (
        SELECT
            o.*,
            p.is_hardware,
            TRY_CAST(o.pid AS BIGINT) & 31 AS device,
            TRY_CAST(o.tid AS BIGINT) AS stream,
            nullif(TRY_CAST(o.args ->> '$.connection_id' AS BIGINT), -1) AS connection_id
        FROM staged_other_events AS o
        JOIN device_processes AS p ON p.pid = o.pid
        WHERE o.phase = 'X'
    ),
    collectives AS (
        SELECT e.*
        FROM events AS e
        SEMI JOIN names AS n
            ON n.kind = 'thread_name' AND n.pid = e.pid AND n.tid = e.tid AND n.name LIKE 'Group%Communication'
        WHERE NOT e.is_hardware
    ),
    arrows AS (
        SELECT DISTINCT f.pid, f.tid
        FROM staged_flows AS f
        WHERE f.phase = 'f' AND f.cat IN ('HostToDevice', 'async_npu')
    ),
    collective_streams AS (
        SELECT DISTINCT e.pid, e.tid
        FROM events AS e
        ANTI JOIN arrows AS a ON a.pid = e.pid AND a.tid = e.tid
        WHERE
            e.is_hardware
            AND EXISTS (FROM collectives)
            AND (
                e.name LIKE 'NOTIFY\_%' ESCAPE '\'
                OR e.connection_id IN (SELECT c.connection_id FROM collectives AS c)
            )
    ),
    own_streams AS (
        SELECT e.connection_id, e.device, min(e.stream) AS stream
        FROM events AS e
        WHERE e.is_hardware AND e.connection_id IS NOT NULL
        GROUP BY ALL
    ),
    -- Call of the task queue that submitted the task at the end of an arrow.
    submitted AS (
        SELECT f.pid, f.tid, f.ts, min(TRY_CAST(q.args ->> '$.correlation_id' AS BIGINT)) AS correlation
        FROM staged_flows AS f
        JOIN staged_flows AS s ON s.flow_id = f.flow_id AND s.phase = 's' AND s.cat = 'HostToDevice'
        ASOF JOIN (FROM staged_other_events AS d WHERE d.cat = 'dequeue' AND d.phase = 'X') AS q ON q.tid = s.tid AND q.ts <= s.ts
        WHERE f.phase = 'f' AND f.cat = 'HostToDevice' AND s.ts <= q.ts + q.dur
        GROUP BY ALL
    )
SELECT e.event_id, e.device, e.stream, u.correlation, false AS is_collective
FROM events AS e
ANTI JOIN collective_streams AS c ON c.pid = e.pid AND c.tid = e.tid
LEFT JOIN submitted AS u ON u.pid = e.pid AND u.tid = e.tid AND u.ts = e.ts
WHERE e.is_hardware
UNION ALL
SELECT c.event_id, c.device, coalesce(s.stream, c.stream), u.correlation, true
FROM collectives AS c
LEFT JOIN own_streams AS s ON s.connection_id = c.connection_id AND s.device = c.device
LEFT JOIN submitted AS u ON u.pid = c.pid AND u.tid = c.tid AND u.ts = c.ts;

-- name: gpu_ops
-- Ascend's device activity, in the same form as any other vendor's.
--
-- The name shows whether an operation is a copy, an event or a notification between streams; everything else is a
-- kernel. The element count of an all-reduce is taken as recorded.
INSERT INTO staged_gpu_ops BY NAME
SELECT
    o.event_id,
    o.ts,
    o.dur,
    o.pid,
    o.tid,
    o.name,
    CASE
        WHEN regexp_matches(o.name, '^mem(cpy|copy)_?async$', 'i') THEN 'gpu_memcpy'
        WHEN regexp_matches(o.name, '^(event|notify)_(wait|record)$', 'i') THEN 'cuda_sync'
        ELSE 'kernel'
    END AS cat,
    d.device,
    d.stream,
    d.correlation,
    CASE WHEN o.name LIKE 'hcom\_allReduce%' ESCAPE '\' THEN TRY_CAST(o.args ->> '$.count' AS BIGINT) END AS in_elems,
    CASE WHEN o.name LIKE 'hcom\_allReduce%' ESCAPE '\' THEN TRY_CAST(o.args ->> '$.count' AS BIGINT) END AS out_elems,
    CASE WHEN d.is_collective THEN o.args ->> '$.data_type' END AS elem_type,
    o.args
FROM staged_other_events AS o
JOIN ascend_device_events AS d ON d.event_id = o.event_id;

-- name: runtime_calls
-- Ascend's task queue: Enqueue on the operator's thread, and Dequeue on the thread that calls the device.
--
-- Both calls have the same correlation id; the launch is the call that starts first, which is inside the operator.
INSERT INTO staged_runtime_calls BY NAME
SELECT
    o.event_id,
    o.ts,
    o.dur,
    o.pid,
    o.tid,
    o.name,
    o.cat,
    TRY_CAST(o.args ->> '$.correlation_id' AS BIGINT) AS correlation,
    CASE WHEN TRY_CAST(o.args ->> '$.correlation_id' AS BIGINT) IS NULL OR len(json_keys(o.args)) <> 1 THEN o.args END AS args
FROM staged_other_events AS o
WHERE o.phase = 'X' AND o.cat IN ('enqueue', 'dequeue');

-- name: drop_moved
-- Remove events that were moved to device activity or task queue calls.
DELETE FROM staged_other_events AS o
WHERE
    (o.phase = 'X' AND o.cat IN ('enqueue', 'dequeue'))
    OR o.event_id IN (SELECT d.event_id FROM ascend_device_events AS d);
