-- Events of a critical path graph: host operators and calls that start in the window, and the device activity that
-- they launch.
--
-- The window is selected by annotation name, or is the whole trace. Device copies of annotations do not count as
-- instances (HTA counts them, Q50), and events of zero duration are kept (HTA drops them, Q51). As in HTA, a device
-- operation without a launch in the window is excluded. A call waits (is_blocking) if it has the name of any vendor's
-- waiting call, or if it launched a copy that had ended when the call returned. Device times are on the host clock
-- (lib.device_clock_skew): recorded time minus the skew, and not before the launching call starts.
CREATE OR REPLACE MACRO lib._critical_path_events(
    runs,
    ranks,
    steps,
    include_last_profiler_step,
    -- Substring of the name of the host events that span the window; NULL or empty means the whole trace.
    annotation,
    -- Index of the event that starts the window, among the events that match annotation in time order, from 0.
    first_instance,
    -- Index of the event that ends the window; NULL means the event that starts it.
    last_instance,
    -- Substrings of the names of annotations and Python frames that load data; NULL means none.
    data_load_names
) AS TABLE
-- Columns:
--   run          VARCHAR          Run name.
--   rank         INTEGER          Rank of the process.
--   event_id     BIGINT           Position of the event in traceEvents.
--   name         VARCHAR          Name of the event.
--   kind         VARCHAR          Kind of the event: operator, call, data_load or gpu.
--   class        VARCHAR          Class of a device operation.
--   ts           BIGINT [ns]      Start on the host clock.
--   dur          BIGINT [ns]      Duration; 0 if the recorded duration is negative.
--   pid          BIGINT           Process id of a host event.
--   tid          BIGINT           Thread id of a host event.
--   depth        INTEGER [count]  Number of events that enclose a host event.
--   parent_id    BIGINT           event_id of the innermost event that encloses a host event.
--   device       BIGINT           Device of a device operation, -1 if unknown.
--   stream       BIGINT           Stream of a device operation, -1 if unknown.
--   launch_id    BIGINT           event_id of the call that launched the device operation.
--   launch_ts    BIGINT [ns]      Start of the launching call.
--   is_blocking  BOOLEAN          Whether the call waits for the device.
--   takes_lock   BOOLEAN          Whether the call launches work or allocates pinned memory, which takes a lock shared by all threads.
WITH
    _scoped AS NOT MATERIALIZED (
        SELECT
            h.run, h.rank, h.event_id, h.name, h.ts, h.dur, h.pid, h.tid, h.depth, h.parent_id,
            CASE h.table_name WHEN 'cpu_ops' THEN 'operator' WHEN 'runtime_calls' THEN 'call' ELSE 'data_load' END AS kind
        FROM lib.host_events(runs, ranks) AS h
        WHERE
            lib.is_requested(steps, h.step)
            AND (include_last_profiler_step OR NOT h.in_last_step)
    ),
    _instances AS (
        SELECT
            s.run, s.rank, s.ts, s.ts + greatest(s.dur, 0) AS end_ts,
            row_number() OVER (PARTITION BY s.run, s.rank ORDER BY s.ts, s.event_id) - 1 AS instance
        FROM _scoped AS s
        WHERE annotation <> '' AND contains(s.name, annotation)
    ),
    _windows AS (
        SELECT i.run, i.rank, min(i.ts) AS from_ts, max(i.end_ts) AS until_ts
        FROM _instances AS i
        WHERE i.instance BETWEEN first_instance AND coalesce(last_instance, first_instance)
        GROUP BY i.run, i.rank
        UNION ALL
        SELECT k.run, k.rank, NULL, NULL
        FROM ranks AS k
        WHERE coalesce(annotation, '') = ''
    ),
    _host_events AS MATERIALIZED (
        SELECT s.*
        FROM _scoped AS s
        JOIN _windows AS w ON w.run = s.run AND w.rank = s.rank
        WHERE
            (w.from_ts IS NULL OR s.ts BETWEEN w.from_ts AND w.until_ts)
            AND (
                s.kind <> 'data_load'
                OR (data_load_names IS NOT NULL AND len(list_filter(data_load_names, lambda part: contains(s.name, part))) > 0)
            )
    ),
    _skews AS MATERIALIZED (
        SELECT k.run, k.rank, k.device, k.skew_ns FROM lib.device_clock_skew(runs, ranks) AS k
    ),
    _launched AS (
        SELECT
            g.run, g.rank, g.event_id, g.name, g.kind, g.class, coalesce(g.device, -1) AS device, coalesce(g.stream, -1) AS stream, g.launch_id,
            h.ts AS launch_ts, h.ts + h.dur AS returned_ts,
            greatest(g.ts - coalesce(k.skew_ns, 0), h.ts) AS ts, g.ts + greatest(g.dur, 0) - coalesce(k.skew_ns, 0) AS end_ts
        FROM gpu_ops AS g
        JOIN _host_events AS h ON h.run = g.run AND h.rank = g.rank AND h.event_id = g.launch_id
        LEFT JOIN _skews AS k ON k.run = g.run AND k.rank = g.rank AND k.device = coalesce(g.device, -1)
        WHERE g.class <> 'sync' AND NOT g.is_suspect
    ),
    _gpu_events AS MATERIALIZED (
        SELECT o.* EXCLUDE (end_ts, returned_ts), greatest(o.end_ts - o.ts, 0) AS dur, o.kind = 'memcpy' AND o.end_ts <= o.returned_ts AS is_awaited
        FROM _launched AS o
    ),
    _launches AS (
        SELECT g.run, g.rank, g.launch_id, bool_or(g.is_awaited) AS is_awaited
        FROM _gpu_events AS g
        GROUP BY g.run, g.rank, g.launch_id
    ),
    -- Evaluate the regular expression once per distinct name instead of once per call.
    _call_names AS (
        SELECT
            n.name,
            regexp_matches(n.name, 'synchronize|event_?query|memcpy$', 'i') AS waits,
            regexp_matches(n.name, 'host_?m?alloc|malloc_?host', 'i') AS pins
        FROM (SELECT DISTINCT h.name FROM _host_events AS h WHERE h.kind = 'call') AS n
    )
SELECT
    h.run, h.rank, h.event_id, h.name, h.kind, NULL::VARCHAR AS class, h.ts, greatest(h.dur, 0) AS dur,
    h.pid, h.tid, h.depth, h.parent_id, NULL::BIGINT AS device, NULL::BIGINT AS stream, NULL::BIGINT AS launch_id, NULL::BIGINT AS launch_ts,
    coalesce(n.waits, false) OR coalesce(l.is_awaited, false) AS is_blocking,
    coalesce(n.pins, false) OR l.launch_id IS NOT NULL AS takes_lock
FROM _host_events AS h
LEFT JOIN _launches AS l ON l.run = h.run AND l.rank = h.rank AND l.launch_id = h.event_id
LEFT JOIN _call_names AS n ON n.name = h.name AND h.kind = 'call'
UNION ALL
SELECT
    g.run, g.rank, g.event_id, g.name, 'gpu', g.class, g.ts, g.dur,
    NULL, NULL, 0, NULL, g.device, g.stream, g.launch_id, g.launch_ts, false, false
FROM _gpu_events AS g
