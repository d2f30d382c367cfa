-- One row per recording of a rank; a rank has several if recordings were joined into one run (ingest --join-spans).
--
-- The time between two recordings belongs to neither of them. The event at position p of traceEvents has the event_id
-- first_event_id + p.
CREATE OR REPLACE VIEW rank_spans AS
-- Columns:
--   run             VARCHAR         Run name: one capture of one job.
--   rank            INTEGER         Rank of the process.
--   span            INTEGER         Number of the recording, from 0 in time order.
--   source          VARCHAR         Path of the trace file.
--   base_time_ns    BIGINT [ns]     baseTimeNanoseconds of the trace: Unix time at which the file's clock is 0.
--   first_ts        BIGINT [ns]     Time of the first event on the file's own clock.
--   start_ns        BIGINT [ns]     Time of the first event; Unix time if base_time_ns is set.
--   offset_ns       BIGINT [ns]     Start of the recording, relative to the run's first event.
--   dur             BIGINT [ns]     Time from the start of the first event in the recording until its last event ends.
--   event_count     BIGINT [count]  Number of events in the file.
--   first_event_id  BIGINT          event_id of the first event in the file.
--   drops_last_step  BOOLEAN         Whether the recording has two or more steps, so analyses exclude its last step by default.
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
-- Spans from 65,536 on are Flight Recorder dumps, memory snapshots and execution traces.
WHERE x.span < 65536
