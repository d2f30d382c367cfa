-- The kind of accelerator that each rank used, as far as its trace tells.
--
-- The backend and the device properties decide, then the names of the runtime calls, then the
-- categories of the device activity. A rank without any of them has NULL.
--
-- Status: stable
-- Since: 0.1
-- Reference: HTA Trace.get_device_type
-- Needs: nothing
-- Scope: runs, ranks; is the same in every step
CREATE OR REPLACE MACRO device_type_v1(
    -- Runs to include; NULL means every run.
    runs VARCHAR[] := NULL,
    -- Ranks to include; NULL means every rank.
    ranks INTEGER[] := NULL
) AS TABLE
-- Columns:
--   run          VARCHAR  Run name.
--   rank         INTEGER  Rank of the process.
--   device_type  VARCHAR  NVIDIA GPU, AMD GPU, MTIA, or NULL.
--   device_name  VARCHAR  Model, where the trace has the properties of its devices.
WITH
    models AS (
        SELECT d.run, d.rank, min(d.name) AS device_name
        FROM devices AS d
        GROUP BY d.run, d.rank
    ),
    calls AS (
        SELECT
            c.run,
            c.rank,
            bool_or(starts_with(c.name, 'runFunction')) AS mtia,
            bool_or(regexp_matches(c.name, '^hip[A-Z]')) AS amd,
            bool_or(regexp_matches(c.name, '^cu(da)?[A-Z]')) AS nvidia
        FROM (SELECT DISTINCT r.run, r.rank, r.name FROM runtime_calls AS r) AS c
        GROUP BY c.run, c.rank
    )
SELECT
    k.run,
    k.rank,
    CASE
        WHEN contains(lower(k.backend), 'mtia') OR c.mtia THEN 'MTIA'
        WHEN regexp_matches(m.device_name, '(?i)nvidia|tesla|geforce|quadro') THEN 'NVIDIA GPU'
        WHEN regexp_matches(m.device_name, '(?i)amd|radeon|instinct') OR c.amd THEN 'AMD GPU'
        WHEN c.nvidia THEN 'NVIDIA GPU'
    END AS device_type,
    m.device_name
FROM ranks AS k
LEFT JOIN models AS m ON m.run = k.run AND m.rank = k.rank
LEFT JOIN calls AS c ON c.run = k.run AND c.rank = k.rank
WHERE lib.wanted(runs, k.run) AND lib.wanted(ranks, k.rank)
ORDER BY k.run, k.rank
