-- What runs on host threads as a named range: operators, annotations, runtime calls, Python calls of
-- the wanted runs, ranks and steps.
--
-- Copies of annotations on the device are left out: they are no events of their own. So are memory
-- events, counters, the profiler's own overhead and events whose duration is below zero.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib.scoped_host_events(
    -- Runs to include; NULL means every run.
    runs,
    -- Ranks to include; NULL means every rank.
    ranks,
    -- Profiler steps to include; NULL means every step and what lies outside of steps.
    steps,
    -- Whether to include the last profiler step.
    include_last_profiler_step
) AS TABLE
-- Columns:
--   run           VARCHAR      Run name.
--   rank          INTEGER      Rank of the process.
--   event_id      BIGINT       Position of the event in traceEvents.
--   category      VARCHAR      cpu_op, user_annotation, python_function, or as the trace names a runtime call.
--   name          VARCHAR      Name.
--   input_dims    VARCHAR      Input shapes as JSON; of operators only.
--   pid           BIGINT       Process id.
--   tid           BIGINT       Thread id.
--   ts            BIGINT [ns]  Start since the run's first event.
--   dur           BIGINT [ns]  Duration.
--   step          BIGINT       Profiler step in which it started; NULL outside of steps.
WITH
    _events AS (
        SELECT
            c.run, c.rank, c.event_id, 'cpu_op' AS category, c.name, c.input_dims, c.pid, c.tid, c.ts, c.dur, c.step,
            c.in_last_step
        FROM cpu_ops AS c
        UNION ALL
        SELECT
            a.run, a.rank, a.event_id, 'user_annotation', a.name, NULL, a.pid, a.tid, a.ts, a.dur, a.step,
            a.in_last_step
        FROM annotations AS a
        WHERE NOT a.on_gpu
        UNION ALL
        SELECT
            r.run, r.rank, r.event_id, r.category, r.name, NULL, r.pid, r.tid, r.ts, r.dur, r.step,
            r.in_last_step
        FROM runtime_calls AS r
        UNION ALL
        SELECT
            p.run, p.rank, p.event_id, 'python_function', p.name, NULL, p.pid, p.tid, p.ts, p.dur, p.step,
            p.in_last_step
        FROM python_calls AS p
    )
SELECT e.run, e.rank, e.event_id, e.category, e.name, e.input_dims, e.pid, e.tid, e.ts, e.dur, e.step
FROM _events AS e
WHERE
    e.dur >= 0
    AND lib.wanted(runs, e.run)
    AND lib.wanted(ranks, e.rank)
    AND lib.wanted(steps, e.step)
    AND (include_last_profiler_step OR NOT e.in_last_step)
