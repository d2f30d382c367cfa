-- The start and the end of every event of a critical path, numbered so that all edges go forward.
--
-- In order of time. What happens at one instant is ordered as it can follow: device operations end, host events end
-- (inner ones first) and start (outer ones first), device operations start; events of no length stand inside what
-- encloses them, behind their launch. So the numbers are a topological order, and no graph has a cycle. Device
-- operations stand on the clock of the host.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib.critical_path_nodes(
    -- Runs to include; NULL means every run.
    runs,
    -- Ranks to include; NULL means every rank.
    ranks,
    -- Profiler steps to include; NULL means every step and all activity outside steps.
    steps,
    -- Whether to include the last profiler step.
    include_last_profiler_step,
    -- Text in the name of the host events that span the window; NULL or empty means everything.
    annotation,
    -- Index of the first of these events in time order, from 0.
    first_instance,
    -- Index of the last of these events; NULL means only the first.
    last_instance,
    -- Texts in the names of ranges and Python frames that load data; NULL means none.
    data_load_names
) AS TABLE
-- Columns:
--   run          VARCHAR          Run name.
--   rank         INTEGER          Rank of the process.
--   node_id      BIGINT           Number of the node in its rank, from 0.
--   event_id     BIGINT           Position of the event in traceEvents.
--   is_start     BOOLEAN          The start of the event, else its end.
--   node_ts      BIGINT [ns]      When, on the clock of the host.
--   name         VARCHAR          Name of the event.
--   kind         VARCHAR          Kind of the event: operator, call, data_load or gpu.
--   class        VARCHAR          Class of a device operation.
--   ts           BIGINT [ns]      Start of the event, on the clock of the host.
--   dur          BIGINT [ns]      Duration of the event.
--   pid          BIGINT           Process id of a host event.
--   tid          BIGINT           Thread id of a host event.
--   depth        INTEGER [count]  Number of events that enclose a host event.
--   parent_id    BIGINT           The nearest of them.
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
    -- Host events of no length that start with one that encloses them. A join, and not a window: most
    -- traces have few events of no length.
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
    -- Numbered without what else is known of an event: rows are sorted here, and short ones in a third of the time.
    _numbered AS (
        SELECT
            b.run, b.rank, b.event_id, b.is_start, b.node_ts,
            row_number() OVER (
                PARTITION BY b.run, b.rank
                ORDER BY b.node_ts, b.phase, b.level, b.event_id, NOT b.is_start
            ) - 1 AS node_id
        FROM (
            SELECT p.run, p.rank, p.event_id, true AS is_start, p.ts AS node_ts, p.start_phase AS phase, p.depth AS level
            FROM _phases AS p
            UNION ALL
            SELECT p.run, p.rank, p.event_id, false, p.end_ts, p.end_phase, -p.depth
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
