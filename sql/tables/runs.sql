-- One row per run (one capture of one job) with its properties. Queries of this table do not open the ranks' files.
--
-- Tags of the run can supply properties that traces do not record, such as git_sha and framework. Tags take
-- precedence over traces.
CREATE OR REPLACE VIEW runs AS
-- Columns:
--   run              VARCHAR         Run name: one capture of one job.
--   rank_count       BIGINT [count]  Number of ranks in the store.
--   world_size       BIGINT [count]  Number of ranks of the job: as recorded, or the sum over roles that count their ranks separately.
--   start_ns         BIGINT [ns]     Time of the first event of any rank; Unix time if the traces have a base time.
--   dur              BIGINT [ns]     Time from the start of the first event of any rank until the last event of any rank ends; excludes the time between recordings.
--   event_count      BIGINT [count]  Number of events of all ranks.
--   drops_last_step  BOOLEAN         Whether the run has two or more steps, so analyses exclude the last one by default.
--   step_count       BIGINT [count]  Number of distinct profiler steps of the host.
--   captured_at      VARCHAR         Time of the first event in UTC, such as 2026-01-31 23:59:59; NULL if no trace has a base time.
--   ingested_at      VARCHAR         Time in UTC at which the last trace of the run was ingested.
--   device_names     VARCHAR         Device models, separated by commas; NULL if not recorded.
--   host_count       BIGINT [count]  Number of distinct hosts; NULL if not recorded.
--   host_name        VARCHAR         Host name of the first rank that records one.
--   framework        VARCHAR         Profiled framework with version, such as torch 2.9.1; NULL if neither a trace nor a tag states it.
--   git_sha          VARCHAR         Commit that the job ran; NULL if neither a trace nor a tag states it.
--   backend          VARCHAR         Communication backend.
--   nccl_version     VARCHAR         NCCL version.
--   tags             VARCHAR         All tags as a JSON object; run_tags has one row per tag.
--   size_bytes       BIGINT [bytes]  Size of the Parquet files of the run's ranks, without derived tables.
SELECT
    r.run,
    count(DISTINCT r.rank) AS rank_count,
    coalesce(any_value(w.world_size), max(r.world_size)) AS world_size,
    min(r.start_ns) AS start_ns,
    any_value(s.dur) AS dur,
    sum(r.event_count)::BIGINT AS event_count,
    bool_or(r.drops_last_step) AS drops_last_step,
    any_value(s.step_count) AS step_count,
    -- A value above the limit is a Unix time, because no clock that counts from machine start gets so far.
    strftime(make_timestamp(min(CASE WHEN r.start_ns > 500000000000000000 THEN r.start_ns END) // 1000), '%Y-%m-%d %H:%M:%S') AS captured_at,
    strftime(make_timestamp(max(r.ingested_ns) // 1000), '%Y-%m-%d %H:%M:%S') AS ingested_at,
    string_agg(DISTINCT r.device_name, ', ' ORDER BY r.device_name) AS device_names,
    nullif(count(DISTINCT r.host_name), 0) AS host_count,
    arg_min(r.host_name, r.rank) AS host_name,
    coalesce(any_value(t.framework), any_value('torch ' || t.torch_version), min(r.framework)) AS framework,
    coalesce(any_value(t.git_sha), min(r.git_sha)) AS git_sha,
    min(r.backend) AS backend,
    min(r.nccl_version) AS nccl_version,
    any_value(t.tags) AS tags,
    sum(r.size_bytes)::BIGINT AS size_bytes
FROM stored.rank_scope AS r
JOIN (
    SELECT p.run, sum(p.dur)::BIGINT AS dur, sum(p.step_count)::BIGINT AS step_count
    FROM (
        SELECT
            r.run,
            max(r.offset_ns + r.dur) - CASE WHEN r.span = 0 THEN 0 ELSE min(r.offset_ns) END AS dur,
            max(r.step_count) AS step_count
        FROM stored.rank_scope AS r
        GROUP BY r.run, r.span
    ) AS p
    GROUP BY p.run
) AS s ON s.run = r.run
LEFT JOIN (
    SELECT p.run, sum(p.world_size)::BIGINT AS world_size
    FROM (
        SELECT r.run, coalesce(r.first_rank, 0) AS first_rank, coalesce(max(r.world_size), count(DISTINCT r.rank)) AS world_size
        FROM stored.rank_scope AS r
        GROUP BY r.run, coalesce(r.first_rank, 0)
    ) AS p
    GROUP BY p.run
    HAVING max(p.first_rank) > 0
) AS w ON w.run = r.run
LEFT JOIN (
    SELECT
        g.run,
        to_json(map_from_entries(list((g.tag, g.tag_value) ORDER BY g.tag)))::VARCHAR AS tags,
        max(CASE WHEN g.tag = 'framework' THEN g.tag_value END) AS framework,
        max(CASE WHEN g.tag = 'torch_version' THEN g.tag_value END) AS torch_version,
        max(CASE WHEN g.tag = 'git_sha' THEN g.tag_value END) AS git_sha
    FROM stored.run_tags AS g
    GROUP BY g.run
) AS t ON t.run = r.run
GROUP BY r.run
