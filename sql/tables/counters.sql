-- Counter samples, one row per series of an event.
CREATE OR REPLACE VIEW counters AS
-- Columns:
--   run       VARCHAR      Run name: one capture of one job.
--   rank      INTEGER      Rank of the process.
--   event_id  BIGINT       Position of the event in traceEvents, plus rank_spans.first_event_id in later recordings of the rank.
--   ts        BIGINT [ns]  Time since the run's first event.
--   pid       BIGINT       Process id; NULL if the trace has a string instead of a number (see event_args).
--   tid       BIGINT       Thread id; NULL if the trace has a string instead of a number (see event_args).
--   name      VARCHAR      Name of the counter; for hardware counters, the metric.
--   category  VARCHAR      Category, such as hardware_counters (PM sampling), mtia_counters or xpu_scope_profiler; NULL if not recorded.
--   device    BIGINT       Device of the counter; NULL unless the category is hardware_counters, mtia_counters or xpu_scope_profiler.
--   series    VARCHAR      Name of the series; empty for hardware counters.
--   value     DOUBLE [1]   Value in the counter's own unit.
--   span      INTEGER      Recording of the rank (see rank_spans); 0 if the rank has only one recording.
SELECT x.* REPLACE (x.ts + r.offset_ns AS ts)
FROM stored.counters AS x
JOIN stored.rank_scope AS r ON r.run = x.run AND r.rank = x.rank AND r.span = x.span
