-- One row per rank: its file, its clock, and what its profiler recorded.
--
-- Of a rank that was recorded several times it is the first recording's file and clock; the others are in rank_spans.
-- (run, rank) is the key of a process in every table, whatever its role is.
CREATE OR REPLACE VIEW ranks AS
-- Columns:
--   run                   VARCHAR         Run: one capture of one job.
--   rank                  INTEGER         Rank of the process.
--   source                VARCHAR         Trace file.
--   rank_source           VARCHAR         What told the rank: given, distributedInfo, file name or order of names.
--   role                  VARCHAR         Role of the process in a job of several roles: trainer, generator, …; NULL unless distributedInfo states it.
--   role_rank             INTEGER         Rank of the process within its role; NULL unless distributedInfo states it.
--   stated_rank           BIGINT          Rank in distributedInfo.
--   world_size            BIGINT [count]  Ranks of the job, as stated.
--   backend               VARCHAR         Communication backend.
--   nccl_version          VARCHAR         NCCL version.
--   host_name             VARCHAR         Host.
--   trace_id              VARCHAR         Id of the capture.
--   trace_schema_version  VARCHAR         Schema version of the trace.
--   record_shapes         BOOLEAN         Recorded with record_shapes=True; NULL: not stated.
--   with_stack            BOOLEAN         Recorded with with_stack=True; NULL: not stated.
--   profile_memory        BOOLEAN         Recorded with profile_memory=True; NULL: not stated.
--   with_flops            BOOLEAN         Recorded with with_flops=True; NULL: not stated.
--   with_modules          BOOLEAN         Recorded with with_modules=True; NULL: not stated.
--   base_time_ns          BIGINT [ns]     baseTimeNanoseconds: Unix time of the file's zero.
--   first_ts              BIGINT [ns]     First event in the file's own clock.
--   start_ns              BIGINT [ns]     First event; Unix time where base_time_ns is there.
--   offset_ns             BIGINT [ns]     Start of this rank since the run's first event.
--   dur                   BIGINT [ns]     From the first event to the last end; of several recordings their sum, without the time between them.
--   event_count           BIGINT [count]  Events in its files.
--   drops_last_step       BOOLEAN         The run has two or more steps, so that analyses leave out the last by default.
--   metadata              VARCHAR         All top-level keys of the file beside the events, as JSON.
--   missing_columns       VARCHAR         Columns that the rank's stored files lack, written by an older version: NULL in its rows until it is ingested again.
--   definitions_changed   BOOLEAN         Ingested by other definitions than this version's: an ingest of the same traces reads it again.
SELECT
    x.run,
    x.rank,
    x.source,
    x.rank_source,
    x.role,
    x.role_rank,
    x.stated_rank,
    x.world_size,
    x.backend,
    x.nccl_version,
    x.host_name,
    x.trace_id,
    x.trace_schema_version,
    x.record_shapes,
    x.with_stack,
    x.profile_memory,
    x.with_flops,
    x.with_modules,
    x.base_time_ns,
    x.first_ts,
    x.start_ns,
    r.offset_ns AS offset_ns,
    (sum(x.dur) OVER of_rank)::BIGINT AS dur,
    (sum(x.event_count) OVER of_rank)::BIGINT AS event_count,
    bool_or(r.drops_last_step) OVER of_rank AS drops_last_step,
    x.metadata,
    max(r.missing_columns) OVER of_rank AS missing_columns,
    bool_or(r.definitions_changed) OVER of_rank AS definitions_changed
FROM stored.ranks AS x
JOIN stored.rank_scope AS r ON r.run = x.run AND r.rank = x.rank AND r.span = x.span
WINDOW of_rank AS (PARTITION BY x.run, x.rank)
QUALIFY x.span = min(x.span) OVER of_rank
