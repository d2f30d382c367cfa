-- All events with a timestamp, from all tables, with the columns that these tables share.
CREATE OR REPLACE VIEW events AS
-- Columns:
--   run         VARCHAR      Run name: one capture of one job.
--   rank        INTEGER      Rank of the process.
--   event_id    BIGINT       Position of the event in traceEvents.
--   table_name  VARCHAR      Table with the event's other columns.
--   category    VARCHAR      Category, under its current Kineto name; NULL for memory events.
--   name        VARCHAR      Name; empty if the event has none.
--   ts          BIGINT [ns]  Start, relative to the run's first event.
--   dur         BIGINT [ns]  Duration; NULL for an instant.
--   pid         BIGINT       Process id, or device.
--   tid         BIGINT       Thread id, or stream.
--   step        BIGINT       Profiler step; NULL outside steps and for tables without a step column.
SELECT c.run, c.rank, c.event_id, 'cpu_ops' AS table_name, 'cpu_op' AS category, c.name, c.ts, c.dur, c.pid, c.tid, c.step
FROM cpu_ops AS c
UNION ALL
SELECT r.run, r.rank, r.event_id, 'runtime_calls', r.category, r.name, r.ts, r.dur, r.pid, r.tid, r.step
FROM runtime_calls AS r
UNION ALL
SELECT g.run, g.rank, g.event_id, 'gpu_ops', g.category, g.name, g.ts, g.dur, g.device, g.stream, g.step
FROM gpu_ops AS g
UNION ALL
SELECT a.run, a.rank, a.event_id, 'annotations', CASE WHEN a.on_gpu THEN 'gpu_user_annotation' ELSE 'user_annotation' END, a.name, a.ts, a.dur, a.pid, a.tid, a.step
FROM annotations AS a
UNION ALL
SELECT p.run, p.rank, p.event_id, 'python_calls', 'python_function', p.name, p.ts, p.dur, p.pid, p.tid, p.step
FROM python_calls AS p
UNION ALL
SELECT m.run, m.rank, m.event_id, 'memory_events', NULL, '[memory]', m.ts, NULL, m.pid, m.tid, m.step
FROM memory_events AS m
UNION ALL
SELECT f.run, f.rank, f.event_id, 'flows', f.category, f.name, f.ts, NULL, f.pid, f.tid, NULL
FROM flows AS f
UNION ALL
SELECT DISTINCT n.run, n.rank, n.event_id, 'counters', n.category, n.name, n.ts, NULL::BIGINT, n.pid, n.tid, NULL::BIGINT
FROM counters AS n
UNION ALL
SELECT o.run, o.rank, o.event_id, 'other_events', o.category, o.name, o.ts, o.dur, TRY_CAST(o.pid AS BIGINT), TRY_CAST(o.tid AS BIGINT), NULL
FROM other_events AS o
