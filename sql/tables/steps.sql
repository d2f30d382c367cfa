-- Profiler steps on the host.
CREATE OR REPLACE VIEW steps AS
-- Columns:
--   run       VARCHAR      Run name: one capture of one job.
--   rank      INTEGER      Rank of the process.
--   event_id  BIGINT       Position of the event in traceEvents, plus rank_spans.first_event_id in later recordings of the rank.
--   step      BIGINT       N of ProfilerStep#N.
--   ts        BIGINT [ns]  Start, relative to the run's first event.
--   dur       BIGINT [ns]  Recorded duration.
--   pid       BIGINT       Process id; NULL if the trace has a string instead of a number (see event_args).
--   tid       BIGINT       Thread id; NULL if the trace has a string instead of a number (see event_args).
--   name      VARCHAR      Recorded name.
--   is_last   BOOLEAN      Whether this is the rank's last step.
--   span      INTEGER      Recording of the rank (see rank_spans); 0 if the rank has only one recording.
SELECT x.* REPLACE (x.ts + r.offset_ns AS ts)
FROM stored.steps AS x
JOIN stored.rank_scope AS r ON r.run = x.run AND r.rank = x.rank AND r.span = x.span
