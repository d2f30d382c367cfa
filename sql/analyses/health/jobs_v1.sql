-- One row for each run: what ran. Devices, ranks, hosts, software and events, as far as its traces say.
--
-- Title: What ran
-- Status: stable
-- Since: 0.1
-- Reference: none; what people ask first about a trace of somebody else
-- Needs: nothing
-- Scope: runs, ranks; is the same in every step
-- Materialized: never; it reads runs, whose tags change
CREATE OR REPLACE MACRO jobs_v1(
    -- Runs to include; NULL means every run.
    runs VARCHAR[] := NULL,
    -- Ranks to include; NULL means every rank.
    ranks INTEGER[] := NULL
) AS TABLE
-- Columns:
--   run           VARCHAR         Run name.
--   rank_count    BIGINT [count]  Ranks.
--   world_size    BIGINT [1]      Ranks of the whole job, as stated; NULL where no trace says so.
--   host_count    BIGINT [count]  Different hosts; NULL where no trace names one.
--   device_count  BIGINT [count]  Devices that did anything, of all ranks.
--   device_names  VARCHAR         Their models, with a comma between them; NULL where no trace says so.
--   framework     VARCHAR         What was profiled, with its version; NULL where no trace says so.
--   runtime       VARCHAR         CUDA or HIP, with its version: CUDA 12.6; likewise.
--   nccl_version  VARCHAR         NCCL version; likewise.
--   event_count   BIGINT [count]  Events of these ranks.
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
    -- CUDA counts 1000 a version and 10 a release, HIP 10,000,000 and 100,000.
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
