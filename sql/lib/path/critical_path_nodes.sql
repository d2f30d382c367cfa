-- Nodes of the critical path graph: start and end of every event, numbered so that all edges go forward.
--
-- Numbers follow time. Simultaneous nodes are ordered by possible dependency: ends of device operations, ends of host
-- events (innermost first), starts of host events (outermost first), starts of device operations. Events of zero
-- duration come after their launch and inside the events that enclose them. Otherwise, the event that started first is
-- first. The numbers are therefore a topological order, and no graph has a cycle. Device operations are on the host clock.
CREATE OR REPLACE MACRO lib.critical_path_nodes(
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
--   node_id      BIGINT           Node number within the rank, from 0, in time order.
--   event_id     BIGINT           Position of the event in traceEvents.
--   is_start     BOOLEAN          Whether the node is the start of the event, otherwise its end.
--   node_ts      BIGINT [ns]      Time on the host clock.
--   name         VARCHAR          Name of the event.
--   kind         VARCHAR          Kind of the event: operator, call, data_load or gpu.
--   class        VARCHAR          Class of a device operation.
--   ts           BIGINT [ns]      Start of the event on the host clock.
--   dur          BIGINT [ns]      Duration of the event.
--   pid          BIGINT           Process id of a host event.
--   tid          BIGINT           Thread id of a host event.
--   depth        INTEGER [count]  Number of events that enclose a host event.
--   parent_id    BIGINT           event_id of the innermost event that encloses a host event.
--   device       BIGINT           Device of a device operation, -1 if unknown.
--   stream       BIGINT           Stream of a device operation, -1 if unknown.
--   launch_id    BIGINT           event_id of the call that launched the device operation.
--   is_blocking  BOOLEAN          Whether the call waits for the device.
--   takes_lock   BOOLEAN          Whether the call launches work or allocates pinned memory, which takes a lock shared by all threads.
WITH
    _events AS MATERIALIZED (
        SELECT e.*
        FROM lib._critical_path_events(
            runs, ranks, steps, include_last_profiler_step, annotation, first_instance, last_instance, data_load_names
        ) AS e
    ),
    -- Host events of zero duration that start together with an event that encloses them. This is a join instead of a
    -- window, because most traces have few such events.
    _inside_starts AS (
        SELECT DISTINCT z.run, z.rank, z.event_id
        FROM _events AS z
        JOIN _events AS e
            ON e.run = z.run AND e.rank = z.rank AND e.ts = z.ts
            AND e.pid IS NOT DISTINCT FROM z.pid AND e.tid IS NOT DISTINCT FROM z.tid
        WHERE z.kind <> 'gpu' AND z.dur = 0 AND e.kind <> 'gpu' AND e.dur > 0
    ),
    _phases AS (
        SELECT
            e.run, e.rank, e.event_id, e.ts, e.ts + e.dur AS end_ts, e.depth,
            CASE
                WHEN e.kind = 'gpu' THEN CASE WHEN e.dur = 0 AND e.ts > e.launch_ts THEN 1 ELSE 8 END
                WHEN e.dur > 0 THEN 5
                WHEN i.event_id IS NOT NULL THEN 6
                ELSE 2
            END AS start_phase,
            CASE
                WHEN e.kind = 'gpu' THEN CASE WHEN e.dur > 0 THEN 0 WHEN e.ts > e.launch_ts THEN 1 ELSE 8 END
                WHEN e.dur > 0 THEN 4
                WHEN i.event_id IS NOT NULL THEN 7
                ELSE 3
            END AS end_phase
        FROM _events AS e
        LEFT JOIN _inside_starts AS i ON i.run = e.run AND i.rank = e.rank AND i.event_id = e.event_id
    ),
    -- Number the nodes without the other columns of an event: sorting narrow rows takes a third of the time.
    _numbered AS (
        SELECT
            b.run, b.rank, b.event_id, b.is_start, b.node_ts,
            row_number() OVER (
                PARTITION BY b.run, b.rank
                ORDER BY b.node_ts, b.phase, b.level, b.ts, b.event_id, NOT b.is_start
            ) - 1 AS node_id
        FROM (
            SELECT p.run, p.rank, p.event_id, true AS is_start, p.ts AS node_ts, p.start_phase AS phase, p.depth AS level, p.ts
            FROM _phases AS p
            UNION ALL
            SELECT p.run, p.rank, p.event_id, false, p.end_ts, p.end_phase, -p.depth, p.ts
            FROM _phases AS p
        ) AS b
    )
SELECT
    n.run,
    n.rank,
    n.node_id,
    n.event_id,
    n.is_start,
    n.node_ts,
    e.name,
    e.kind,
    e.class,
    e.ts,
    e.dur,
    e.pid,
    e.tid,
    e.depth,
    e.parent_id,
    e.device,
    e.stream,
    e.launch_id,
    e.is_blocking,
    e.takes_lock
FROM _numbered AS n
JOIN _events AS e ON e.run = n.run AND e.rank = n.rank AND e.event_id = n.event_id
