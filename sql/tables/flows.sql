-- Flow arrows between events: launch to kernel, forward to backward.
CREATE OR REPLACE VIEW flows AS
-- Columns:
--   run            VARCHAR      Run name: one capture of one job.
--   rank           INTEGER      Rank of the process.
--   event_id       BIGINT       Position of the event in traceEvents, plus rank_spans.first_event_id in later recordings of the rank.
--   ts             BIGINT [ns]  Time since the run's first event.
--   pid            BIGINT       Process id; NULL if the trace has a string instead of a number (see event_args).
--   tid            BIGINT       Thread id; NULL if the trace has a string instead of a number (see event_args).
--   name           VARCHAR      Name of the arrow.
--   category       VARCHAR      Category of the arrow, such as ac2g or fwdbwd.
--   phase          VARCHAR      Phase: s (start), t (step) or f (end).
--   flow_id        VARCHAR      Id shared by the ends of an arrow; a string, because some producers write ids longer than 64 bits.
--   binding_point  VARCHAR      e: the arrow binds to the enclosing event.
--   span           INTEGER      Recording of the rank (see rank_spans); 0 if the rank has only one recording.
SELECT x.* REPLACE (x.ts + r.offset_ns AS ts)
FROM stored.flows AS x
JOIN stored.rank_scope AS r ON r.run = x.run AND r.rank = x.rank AND r.span = x.span
