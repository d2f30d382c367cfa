-- Type of accelerator used by each rank, as far as its trace records it.
--
-- The type is derived from the communication backend, otherwise from the device model, otherwise from the names of
-- runtime calls. The table vendors maps all three to types. The type is NULL if none of them matches.
--
-- Title: Accelerator of each rank
-- Status: stable
-- Since: 0.1
-- Reference: HTA Trace.get_device_type
-- Needs: nothing
-- Scope: runs, ranks; the same in every step
CREATE OR REPLACE MACRO device_type_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL
) AS TABLE
-- Columns:
--   run          VARCHAR  Run name.
--   rank         INTEGER  Rank of the process.
--   device_type  VARCHAR  NVIDIA GPU, AMD GPU, MTIA, Ascend NPU, Intel XPU or another entry of the table vendors; NULL if unknown.
--   device_name  VARCHAR  Device model; NULL if the trace has no device properties.
WITH
    device_types AS (
        SELECT v.vendor, v.value AS device_type, v.priority
        FROM vendors AS v
        WHERE v.fact = 'device_type'
    ),
    models AS (
        SELECT d.run, d.rank, min(d.name) AS device_name
        FROM devices AS d
        GROUP BY d.run, d.rank
    ),
    -- Compare each distinct name with the prefixes only once.
    calls AS (
        SELECT n.name, v.vendor
        FROM (SELECT DISTINCT r.name FROM runtime_calls AS r) AS n
        JOIN vendors AS v
            ON v.fact = 'call_prefix' AND starts_with(n.name, v.value)
            AND regexp_matches(substr(n.name, len(v.value) + 1), '^([A-Z ]|$)')
    ),
    evidence AS (
        SELECT k.run, k.rank, v.vendor, 1 AS strength
        FROM ranks AS k
        JOIN vendors AS v ON v.fact = 'backend' AND contains(lower(k.backend), v.value)
        UNION ALL
        SELECT m.run, m.rank, v.vendor, 2 AS strength
        FROM models AS m
        JOIN vendors AS v ON v.fact = 'device_name' AND contains(lower(m.device_name), lower(v.value))
        UNION ALL
        SELECT DISTINCT r.run, r.rank, c.vendor, 3 AS strength
        FROM runtime_calls AS r
        JOIN calls AS c ON c.name = r.name
    ),
    found AS (
        SELECT e.run, e.rank, arg_min(t.device_type, (e.strength, t.priority)) AS device_type
        FROM evidence AS e
        JOIN device_types AS t ON t.vendor = e.vendor
        GROUP BY e.run, e.rank
    )
SELECT k.run, k.rank, f.device_type, m.device_name
FROM ranks AS k
LEFT JOIN models AS m ON m.run = k.run AND m.rank = k.rank
LEFT JOIN found AS f ON f.run = k.run AND f.rank = k.rank
WHERE lib.is_requested(runs, k.run) AND lib.is_requested(ranks, k.rank)
ORDER BY k.run, k.rank
