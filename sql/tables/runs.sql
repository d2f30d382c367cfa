-- One row per run: one capture of one job, and what is known of it. No file of a rank is opened for it.
--
-- What a trace does not say of its program can be given as tags of the run: git_sha, framework. They go before what
-- the traces say.
CREATE OR REPLACE VIEW runs AS
-- Columns:
--   run              VARCHAR         Run: one capture of one job.
--   rank_count       BIGINT [count]  Ranks in the store.
--   world_size       BIGINT [count]  Ranks of the job, as stated.
--   start_ns         BIGINT [ns]     First event of all ranks; Unix time where the traces have a base time.
--   dur              BIGINT [ns]     From the first event of any rank to the last end of any; without the time between spans.
--   event_count      BIGINT [count]  Events of all ranks.
--   drops_last_step  BOOLEAN         The run has two or more steps, so that analyses leave out the last by default.
--   step_count       BIGINT [count]  Different profiler steps of the host.
--   captured_at      VARCHAR         Time of the first event, UTC: 2026-01-31 23:59:59; NULL where no trace has a base time.
--   ingested_at      VARCHAR         When the last of its traces was read, UTC.
--   device_names     VARCHAR         Models of the devices, with a comma between them; NULL where no trace says so.
--   host_count       BIGINT [count]  Different hosts; NULL where no trace names one.
--   host_name        VARCHAR         Host of the first rank that names one.
--   framework        VARCHAR         What was profiled, with its version: torch 2.9.1; NULL where neither a trace nor a tag says so.
--   git_sha          VARCHAR         Commit of the job; likewise.
--   backend          VARCHAR         Communication backend.
--   nccl_version     VARCHAR         NCCL version.
--   tags             VARCHAR         All tags, as a JSON object; a row each in run_tags.
--   size_bytes       BIGINT [bytes]  Parquet of its ranks, without what was derived from it.
SELECT
    r.run,
    count(DISTINCT r.rank) AS rank_count,
    max(r.world_size) AS world_size,
    min(r.start_ns) AS start_ns,
    any_value(s.dur) AS dur,
    sum(r.event_count)::BIGINT AS event_count,
    bool_or(r.drops_last_step) AS drops_last_step,
    any_value(s.step_count) AS step_count,
    -- As far from 1970 as the clock of no machine gets that counts from its start.
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
