-- All arguments, as JSON, of events with an argument that no column stores.
CREATE OR REPLACE VIEW event_args AS
-- Columns:
--   run       VARCHAR  Run name: one capture of one job.
--   rank      INTEGER  Rank of the process.
--   event_id  BIGINT   Position of the event in traceEvents.
--   args      VARCHAR  All arguments of the event as JSON; read one with args ->> '$."Key"'.
--   pid_text  VARCHAR  Process id, if not a number.
--   tid_text  VARCHAR  Thread id, if not a number.
SELECT x.* EXCLUDE (span) REPLACE (x.args::VARCHAR AS args)
FROM stored.event_args AS x
