-- Events that belong to no other table: metadata, instants, overhead, unknown categories.
CREATE OR REPLACE VIEW other_events AS
-- Columns:
--   run       VARCHAR      Run name: one capture of one job.
--   rank      INTEGER      Rank of the process.
--   event_id  BIGINT       Position of the event in traceEvents, plus rank_spans.first_event_id in later recordings of the rank.
--   ts        BIGINT [ns]  Start, relative to the run's first event.
--   dur       BIGINT [ns]  Recorded duration.
--   pid       VARCHAR      Process id as a string.
--   tid       VARCHAR      Thread id as a string.
--   name      VARCHAR      Name of the event.
--   category  VARCHAR      Category; NULL if there is none.
--   phase     VARCHAR      Phase: X (complete), i (instant), M (metadata), ...
--   flow_id   VARCHAR      Id; NULL if there is none.
--   scope     VARCHAR      Scope of an instant.
--   args      VARCHAR      Arguments as JSON.
--   span      INTEGER      Recording of the rank (see rank_spans); 0 if the rank has only one recording.
SELECT x.* REPLACE (x.ts + r.offset_ns AS ts, x.args::VARCHAR AS args)
FROM stored.other_events AS x
JOIN stored.rank_scope AS r ON r.run = x.run AND r.rank = x.rank AND r.span = x.span
