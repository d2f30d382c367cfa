-- Profiler steps of the host.
CREATE OR REPLACE VIEW steps AS
-- Columns:
--   run       VARCHAR      Run: one capture of one job.
--   rank      INTEGER      Rank of the process.
--   step      BIGINT       N of ProfilerStep#N.
--   event_id  BIGINT       Position of the event in traceEvents; of later spans behind rank_spans.first_event_id.
--   span      INTEGER      Recording of the rank that it is of: 0, where there is one only (see rank_spans).
--   ts        BIGINT [ns]  Start since the run's first event.
--   dur       BIGINT [ns]  Duration as recorded.
--   pid       BIGINT       Process id; NULL where the trace has text (see event_args).
--   tid       BIGINT       Thread id; NULL where the trace has text (see event_args).
--   name      VARCHAR      Name as recorded.
--   is_last   BOOLEAN      The rank's last step.
SELECT
    x.run,
    x.rank,
    x.step,
    x.event_id,
    x.span,
    x.ts + r.offset_ns AS ts,
    x.dur,
    x.pid,
    x.tid,
    x.name,
    x.is_last
FROM stored.steps AS x
JOIN stored.rank_scope AS r ON r.run = x.run AND r.rank = x.rank AND r.span = x.span
