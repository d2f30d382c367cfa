-- Host events that last: operators, calls, and what may load data, annotations and Python frames.
--
-- Copies of annotations on the device are none.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib.host_spans(
    -- Runs to include; NULL means every run.
    runs,
    -- Ranks to include; NULL means every rank.
    ranks
) AS TABLE
-- Columns:
--   run           VARCHAR          Run name.
--   rank          INTEGER          Rank of the process.
--   event_id      BIGINT           Position of the event in traceEvents.
--   name          VARCHAR          Name.
--   kind          VARCHAR          operator, call or data_load.
--   ts            BIGINT [ns]      Start.
--   dur           BIGINT [ns]      Duration, as recorded.
--   pid           BIGINT           Process.
--   tid           BIGINT           Thread.
--   depth         INTEGER [count]  Number of events that enclose it.
--   parent_id     BIGINT           The nearest of them.
--   step          BIGINT           Profiler step.
--   in_last_step  BOOLEAN          Whether the profiler stopped in its step.
WITH
    _spans AS NOT MATERIALIZED (
        SELECT c.run, c.rank, c.event_id, c.name, 'operator' AS kind, c.ts, c.dur, c.pid, c.tid, c.depth, c.parent_id, c.step, c.in_last_step
        FROM cpu_ops AS c
        UNION ALL
        SELECT r.run, r.rank, r.event_id, r.name, 'call', r.ts, r.dur, r.pid, r.tid, r.depth, r.parent_id, r.step, r.in_last_step
        FROM runtime_calls AS r
        UNION ALL
        SELECT a.run, a.rank, a.event_id, a.name, 'data_load', a.ts, a.dur, a.pid, a.tid, a.depth, a.parent_id, a.step, a.in_last_step
        FROM annotations AS a
        WHERE NOT a.on_gpu
        UNION ALL
        SELECT p.run, p.rank, p.event_id, p.name, 'data_load', p.ts, p.dur, p.pid, p.tid, p.depth, p.parent_id, p.step, p.in_last_step
        FROM python_calls AS p
    )
SELECT s.*
FROM _spans AS s
WHERE
    lib.wanted(runs, s.run)
    AND lib.wanted(ranks, s.rank)
