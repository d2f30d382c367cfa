-- One row per recording of a rank: one, or several that are one run (ingest --join-spans).
--
-- The time between two recordings is nobody's. What stands in position p of traceEvents has the event_id
-- first_event_id + p.
CREATE OR REPLACE VIEW rank_spans AS
-- Columns:
--   run             VARCHAR         Run: one capture of one job.
--   rank            INTEGER         Rank of the process.
--   span            INTEGER         0, 1, … in order of time.
--   source          VARCHAR         Trace file.
--   base_time_ns    BIGINT [ns]     baseTimeNanoseconds: Unix time of the file's zero.
--   first_ts        BIGINT [ns]     First event in the file's own clock.
--   start_ns        BIGINT [ns]     First event; Unix time where base_time_ns is there.
--   offset_ns       BIGINT [ns]     Start of the recording since the run's first event.
--   dur             BIGINT [ns]     From its first event to its last end.
--   event_count     BIGINT [count]  Events in the file.
--   first_event_id  BIGINT          event_id of the first event in the file.
--   drops_last_step  BOOLEAN         It has two or more steps, so that analyses leave out its last by default.
SELECT
    x.run,
    x.rank,
    x.span,
    x.source,
    x.base_time_ns,
    x.first_ts,
    x.start_ns,
    r.offset_ns AS offset_ns,
    x.dur,
    x.event_count,
    x.span::BIGINT << 32 AS first_event_id,
    r.drops_last_step AS drops_last_step
FROM stored.ranks AS x
JOIN stored.rank_scope AS r ON r.run = x.run AND r.rank = x.rank AND r.span = x.span
