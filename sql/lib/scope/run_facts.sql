-- Properties that decide whether runs can be compared: hardware, number of ranks, software, and recording options.
CREATE OR REPLACE MACRO lib.run_facts(
    runs,
    ranks
) AS TABLE
-- Columns:
--   run         VARCHAR     Run name.
--   position    BIGINT [1]  Position of the property in the list, from 1.
--   fact        VARCHAR     Name of the compared property.
--   fact_value  VARCHAR     Value of the property; NULL if unknown.
--   severity    VARCHAR     Verdict if the values differ: limited or not comparable.
WITH
    _known AS (
        SELECT k.* FROM ranks AS k WHERE lib.is_requested(runs, k.run) AND lib.is_requested(ranks, k.rank)
    ),
    _models AS (
        SELECT m.run, string_agg(DISTINCT m.name, ', ' ORDER BY m.name) AS names FROM lib.device_models(runs, ranks) AS m GROUP BY m.run
    ),
    _stepped AS (
        SELECT s.run FROM steps AS s WHERE lib.is_requested(runs, s.run) AND lib.is_requested(ranks, s.rank) GROUP BY s.run
    ),
    -- Most frequent operand data type of matrix products.
    _products AS (
        SELECT c.run, CASE WHEN json_valid(c.input_types) THEN c.input_types END ->> (CASE WHEN ends_with(c.name, 'addmm') THEN '$[1]' ELSE '$[0]' END) AS type_name, count(*) AS op_count
        FROM cpu_ops AS c
        WHERE
            c.name IN ('aten::mm', 'aten::addmm', 'aten::bmm', 'aten::_scaled_mm', 'aten::convolution')
            AND lib.is_requested(runs, c.run) AND lib.is_requested(ranks, c.rank)
        GROUP BY ALL
    ),
    _types AS (
        SELECT p.run, arg_min(p.type_name, (-p.op_count, p.type_name)) AS type_name
        FROM _products AS p
        WHERE p.type_name <> ''
        GROUP BY p.run
    ),
    _told AS (
        SELECT
            k.run,
            max(k.world_size)::VARCHAR AS world_size,
            count(*)::VARCHAR AS rank_count,
            min(coalesce('CUDA ' || (k.metadata ->> 'cuda_runtime_version'), 'HIP ' || (k.metadata ->> 'hip_runtime_version'))) AS runtime,
            min(coalesce(k.metadata ->> 'cuda_driver_version', k.metadata ->> 'hip_driver_version')) AS driver,
            min(k.nccl_version) AS nccl,
            min(nullif(concat_ws(' ', CASE WHEN k.record_shapes THEN 'shapes' END, CASE WHEN k.with_stack THEN 'stack' END, CASE WHEN k.profile_memory THEN 'memory' END), '')) AS recorded
        FROM _known AS k
        GROUP BY k.run
    ),
    _facts AS (
        SELECT t.run, 1 AS position, 'device' AS fact, m.names AS fact_value, 'limited' AS severity FROM _told AS t LEFT JOIN _models AS m ON m.run = t.run
        UNION ALL
        SELECT t.run, 2, 'world size', t.world_size, 'not comparable' FROM _told AS t
        UNION ALL
        SELECT t.run, 3, 'ranks', t.rank_count, 'limited' FROM _told AS t
        UNION ALL
        SELECT t.run, 4, 'steps', CASE WHEN s.run IS NULL THEN 'none recorded' ELSE 'recorded' END, 'not comparable' FROM _told AS t LEFT JOIN _stepped AS s ON s.run = t.run
        UNION ALL
        SELECT t.run, 5, 'type of matrix products', p.type_name, 'limited' FROM _told AS t LEFT JOIN _types AS p ON p.run = t.run
        UNION ALL
        SELECT t.run, 6, 'runtime', t.runtime, 'limited' FROM _told AS t
        UNION ALL
        SELECT t.run, 7, 'driver', t.driver, 'limited' FROM _told AS t
        UNION ALL
        SELECT t.run, 8, 'NCCL', t.nccl, 'limited' FROM _told AS t
        UNION ALL
        SELECT t.run, 9, 'recorded with', t.recorded, 'limited' FROM _told AS t
    )
SELECT f.run AS run, f.position::BIGINT AS position, f.fact AS fact, f.fact_value AS fact_value, f.severity AS severity
FROM _facts AS f
