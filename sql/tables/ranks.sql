-- One row per rank: its file, its clock, and what its profiler recorded.
--
-- For a rank with several recordings, the file and clock are those of the first recording; rank_spans has all
-- recordings. (run, rank) identifies a process in every table, regardless of its role.
CREATE OR REPLACE VIEW ranks AS
-- Columns:
--   run                   VARCHAR         Run name: one capture of one job.
--   rank                  INTEGER         Rank of the process.
--   source                VARCHAR         Path of the trace file.
--   rank_source           VARCHAR         Source of the rank number: given, distributedInfo, file name, merged file or order of names.
--   role                  VARCHAR         Role of the process in a job with several roles, such as trainer or generator: given when ingesting, stated in distributedInfo, or part of the file names; NULL if there is none.
--   role_rank             INTEGER         Rank of the process within its role, as stated in distributedInfo, otherwise by rank; NULL without a role.
--   first_rank            INTEGER         Rank that the role's rank 0 has in the run; not 0 if several roles count their ranks from 0.
--   stated_rank           BIGINT          Rank recorded in distributedInfo.
--   world_size            BIGINT [count]  Number of ranks of the job: as recorded, or the sum over roles that count their ranks separately.
--   backend               VARCHAR         Communication backend.
--   nccl_version          VARCHAR         NCCL version.
--   host_name             VARCHAR         Host name.
--   trace_id              VARCHAR         Id of the capture.
--   trace_schema_version  VARCHAR         Schema version of the trace.
--   record_shapes         BOOLEAN         Whether record_shapes=True was set; NULL if not recorded.
--   with_stack            BOOLEAN         Whether with_stack=True was set; NULL if not recorded.
--   profile_memory        BOOLEAN         Whether profile_memory=True was set; NULL if not recorded.
--   with_flops            BOOLEAN         Whether with_flops=True was set; NULL if not recorded.
--   with_modules          BOOLEAN         Whether with_modules=True was set; NULL if not recorded.
--   base_time_ns          BIGINT [ns]     baseTimeNanoseconds of the trace: Unix time at which the file's clock is 0.
--   first_ts              BIGINT [ns]     Time of the first event on the file's own clock.
--   start_ns              BIGINT [ns]     Time of the first event; Unix time if base_time_ns is set.
--   offset_ns             BIGINT [ns]     Start of the rank, relative to the run's first event.
--   dur                   BIGINT [ns]     Time from the start of the first event until the last event ends; for several recordings, the sum of their durations.
--   event_count           BIGINT [count]  Number of events in the rank's files.
--   text_bytes            BIGINT [bytes]  Size of the rank's files, unpacked, as far as they could be read.
--   drops_last_step       BOOLEAN         Whether the run has two or more steps, so analyses exclude the last one by default.
--   metadata              VARCHAR         All top-level keys of the file except the events, as JSON.
--   missing_columns       VARCHAR         Columns missing from the rank's files, which an older version wrote; the columns are NULL until the rank is ingested again.
--   definitions_changed   BOOLEAN         Whether the rank was ingested with the definitions of an older version, so that ingesting the same traces again rereads them.
SELECT
    x.run,
    x.rank,
    x.source,
    x.rank_source,
    x.role,
    CASE
        WHEN x.role IS NOT NULL THEN coalesce(
            x.role_rank,
            CASE WHEN w.run IS NOT NULL THEN x.rank - coalesce(x.first_rank, 0) END,
            row_number() OVER (PARTITION BY x.run, x.role, x.span ORDER BY x.rank) - 1
        )::INTEGER
    END AS role_rank,
    coalesce(x.first_rank, 0) AS first_rank,
    x.stated_rank,
    coalesce(w.world_size, x.world_size) AS world_size,
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
    (sum(x.text_bytes) OVER of_rank)::BIGINT AS text_bytes,
    bool_or(r.drops_last_step) OVER of_rank AS drops_last_step,
    x.metadata,
    max(r.missing_columns) OVER of_rank AS missing_columns,
    bool_or(r.definitions_changed) OVER of_rank AS definitions_changed
FROM stored.ranks AS x
JOIN stored.rank_scope AS r ON r.run = x.run AND r.rank = x.rank AND r.span = x.span
LEFT JOIN (
    SELECT s.run, sum(s.world_size)::BIGINT AS world_size
    FROM (
        SELECT c.run, coalesce(c.first_rank, 0) AS first_rank, coalesce(max(c.world_size), count(DISTINCT c.rank)) AS world_size
        FROM stored.rank_scope AS c
        GROUP BY c.run, coalesce(c.first_rank, 0)
    ) AS s
    GROUP BY s.run
    HAVING max(s.first_rank) > 0
) AS w ON w.run = x.run
WINDOW of_rank AS (PARTITION BY x.run, x.rank)
QUALIFY x.span = min(x.span) OVER of_rank
