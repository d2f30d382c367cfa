-- Devices, ranks, hosts, software and events of each run, as far as its traces record them.
--
-- Title: What ran
-- Shown: rank_count, world_size, host_count, device_names, framework, runtime, event_count
-- Status: stable
-- Since: 0.1
-- Reference: none; the first questions about an unfamiliar trace
-- Needs: nothing
-- Scope: runs, ranks; the same in every step
-- Materialized: never; the table runs contains tags, which can change
CREATE OR REPLACE MACRO jobs_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL
) AS TABLE
-- Columns:
--   run           VARCHAR         Run name.
--   rank_count    BIGINT [count]  Number of ranks.
--   world_size    BIGINT [1]      Recorded number of ranks of the whole job; NULL if not recorded.
--   host_count    BIGINT [count]  Number of distinct hosts; NULL if not recorded.
--   device_count  BIGINT [count]  Number of devices with activity, over all ranks.
--   device_names  VARCHAR         Device models, separated by commas; NULL if not recorded.
--   framework     VARCHAR         Profiled framework with version; NULL if not recorded.
--   runtime       VARCHAR         CUDA or HIP with version, such as CUDA 12.6; NULL if not recorded.
--   nccl_version  VARCHAR         NCCL version; NULL if not recorded.
--   event_count   BIGINT [count]  Number of events of all ranks.
WITH
    models AS (
        SELECT m.run, count(*) AS device_count, string_agg(DISTINCT m.name, ', ' ORDER BY m.name) AS device_names
        FROM lib.device_models(runs, ranks) AS m
        GROUP BY m.run
    ),
    stated AS (
        SELECT
            k.run,
            max(k.world_size) AS world_size,
            nullif(count(DISTINCT k.host_name), 0) AS host_count,
            max(try_cast(k.metadata ->> 'cuda_runtime_version' AS BIGINT)) AS cuda,
            max(try_cast(k.metadata ->> 'hip_runtime_version' AS BIGINT)) AS hip,
            max(k.nccl_version) AS nccl_version,
            sum(k.event_count)::BIGINT AS event_count,
            count(*) AS rank_count
        FROM ranks AS k
        WHERE lib.is_requested(runs, k.run) AND lib.is_requested(ranks, k.rank)
        GROUP BY k.run
    )
SELECT
    s.run,
    s.rank_count,
    s.world_size,
    s.host_count,
    coalesce(m.device_count, 0) AS device_count,
    m.device_names,
    r.framework,
    -- CUDA encodes versions as 1000 * major + 10 * minor, HIP as 10,000,000 * major + 100,000 * minor.
    CASE
        WHEN s.cuda IS NOT NULL THEN concat('CUDA ', s.cuda // 1000, '.', s.cuda % 1000 // 10)
        WHEN s.hip IS NOT NULL THEN concat('HIP ', s.hip // 10000000, '.', s.hip % 10000000 // 100000)
    END AS runtime,
    s.nccl_version,
    s.event_count
FROM stated AS s
LEFT JOIN models AS m ON m.run = s.run
LEFT JOIN runs AS r ON r.run = s.run
ORDER BY s.run
