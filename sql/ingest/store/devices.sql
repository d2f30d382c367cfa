-- One row per device described by the trace.
WITH
    devices AS (
        SELECT m.part, unnest(from_json(m.metadata -> '$.deviceProperties', '["JSON"]')) AS properties
        FROM job AS m
    ),
    decoded AS (
        SELECT
            d.part,
            d.properties,
            from_json(
                d.properties,
                '{"id": "BIGINT", "name": "VARCHAR", "totalGlobalMem": "BIGINT", "computeMajor": "INTEGER", "computeMinor": "INTEGER", "numSms": "INTEGER", "warpSize": "INTEGER", "maxThreadsPerBlock": "INTEGER", "maxThreadsPerMultiprocessor": "INTEGER", "sharedMemPerMultiprocessor": "BIGINT"}'
            ) AS p
        FROM devices AS d
    )
SELECT
    j.run,
    j.rank,
    d.p.id AS device,
    nullif(trim(d.p.name), '') AS name,
    CASE WHEN d.p.totalGlobalMem BETWEEN 0 AND 1125899906842624 THEN d.p.totalGlobalMem END AS total_memory_bytes,
    d.p.computeMajor AS compute_major,
    d.p.computeMinor AS compute_minor,
    CASE WHEN d.p.numSms > 0 THEN d.p.numSms END AS multiprocessor_count,
    d.p.warpSize AS warp_size,
    d.p.maxThreadsPerBlock AS max_threads_per_block,
    d.p.maxThreadsPerMultiprocessor AS max_threads_per_multiprocessor,
    d.p.sharedMemPerMultiprocessor AS shared_memory_per_multiprocessor_bytes,
    d.properties::VARCHAR AS properties
FROM decoded AS d
JOIN job AS j ON j.part = d.part
ORDER BY ALL
