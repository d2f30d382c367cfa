-- The start and the end of every event of a critical path, numbered so that all edges go forward.
--
-- In order of time. What happens at one instant is ordered as it can follow: device operations end,
-- host events end (inner ones first) and start (outer ones first), device operations start; events
-- of no length stand inside what encloses them. So the numbers are a topological order, and no graph
-- has a cycle.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib.critical_path_nodes(
    -- Runs to include; NULL means every run.
    runs,
    -- Ranks to include; NULL means every rank.
    ranks,
    -- Profiler steps to include; NULL means every step and what lies outside of steps.
    steps,
    -- Whether to include the last profiler step.
    include_last_profiler_step,
    -- Text in the name of the host events that span the window; NULL or empty means everything.
    annotation,
    -- Number of the first of these events, in order of time, from 0.
    first_instance,
    -- Number of the last one; NULL means the first one alone.
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
--   node_ts      BIGINT [ns]      When.
--   name         VARCHAR          Name of the event.
--   kind         VARCHAR          operator, call, data_load or gpu.
--   class        VARCHAR          Class of a device operation.
--   ts           BIGINT [ns]      Start of the event.
--   dur          BIGINT [ns]      Duration of the event.
--   pid          BIGINT           Process of a host event.
--   tid          BIGINT           Thread of a host event.
--   depth        INTEGER [count]  Number of events that enclose a host event.
--   parent_id    BIGINT           The nearest of them.
--   device       BIGINT           Device of a device operation, -1 if unknown.
--   stream       BIGINT           Stream of a device operation, -1 if unknown.
--   launch_id    BIGINT           The call that launched a device operation.
--   is_blocking  BOOLEAN          A call that waits for the device.
--   takes_lock   BOOLEAN          A call that launches, or allocates pinned memory: one at a time.
WITH
    _events AS (
        SELECT
            e.*,
            e.kind <> 'gpu' AND e.dur = 0
            AND bool_or(e.dur > 0) OVER (PARTITION BY e.run, e.rank, e.pid, e.tid, e.kind = 'gpu', e.ts) AS is_inside_a_start
        FROM lib.critical_path_events(
            runs, ranks, steps, include_last_profiler_step, annotation, first_instance, last_instance, data_load_names
        ) AS e
    ),
    _bounds AS (
        SELECT
            e.* EXCLUDE (is_inside_a_start),
            true AS is_start,
            e.ts AS node_ts,
            CASE
                WHEN e.kind = 'gpu' THEN CASE WHEN e.dur = 0 THEN 1 ELSE 8 END
                WHEN e.dur > 0 THEN 5
                WHEN e.is_inside_a_start THEN 6
                ELSE 2
            END AS phase,
            e.depth AS level
        FROM _events AS e
        UNION ALL
        SELECT
            e.* EXCLUDE (is_inside_a_start),
            false,
            e.ts + e.dur,
            CASE
                WHEN e.kind = 'gpu' THEN CASE WHEN e.dur = 0 THEN 1 ELSE 0 END
                WHEN e.dur > 0 THEN 4
                WHEN e.is_inside_a_start THEN 7
                ELSE 3
            END,
            -e.depth
        FROM _events AS e
    )
SELECT
    b.run,
    b.rank,
    row_number() OVER (
        PARTITION BY b.run, b.rank
        ORDER BY b.node_ts, b.phase, b.level, b.event_id, NOT b.is_start
    ) - 1 AS node_id,
    b.event_id,
    b.is_start,
    b.node_ts,
    b.name,
    b.kind,
    b.class,
    b.ts,
    b.dur,
    b.pid,
    b.tid,
    b.depth,
    b.parent_id,
    b.device,
    b.stream,
    b.launch_id,
    b.is_blocking,
    b.takes_lock
FROM _bounds AS b
