-- One row per rank: its properties as recorded in the trace, and its clock.
--
-- first_ts is on the file's own clock; start_ns adds baseTimeNanoseconds if the trace has it and is then Unix time.
WITH
    keys AS (
        SELECT
            m.part,
            m.metadata,
            from_json(
                m.metadata,
                '{"distributedInfo": {"rank": "BIGINT", "world_size": "BIGINT", "backend": "VARCHAR", "nccl_version": "VARCHAR", "role": "VARCHAR", "role_rank": "INTEGER"}, "host_name": "VARCHAR", "trace_id": "VARCHAR", "schemaVersion": "VARCHAR", "record_shapes": "INTEGER", "with_stack": "INTEGER", "profile_memory": "INTEGER", "with_flops": "INTEGER", "with_modules": "INTEGER"}'
            ) AS m
        FROM job AS m
    )
SELECT
    j.run,
    j.rank,
    j.source,
    j.rank_source,
    coalesce(j.role, k.m.distributedInfo.role) AS role,
    j.first_rank,
    CASE WHEN k.m.distributedInfo.role_rank >= 0 THEN k.m.distributedInfo.role_rank END AS role_rank,
    k.m.distributedInfo.rank AS stated_rank,
    CASE WHEN k.m.distributedInfo.world_size BETWEEN 1 AND 16777216 THEN k.m.distributedInfo.world_size END AS world_size,
    k.m.distributedInfo.backend AS backend,
    k.m.distributedInfo.nccl_version AS nccl_version,
    k.m.host_name AS host_name,
    k.m.trace_id AS trace_id,
    k.m.schemaVersion AS trace_schema_version,
    k.m.record_shapes = 1 AS record_shapes,
    k.m.with_stack = 1 AS with_stack,
    k.m.profile_memory = 1 AS profile_memory,
    k.m.with_flops = 1 AS with_flops,
    k.m.with_modules = 1 AS with_modules,
    c.base_time_ns,
    c.first_ts,
    c.start_ns,
    c.last_ts - c.first_ts AS dur,
    j.event_count,
    j.text_bytes,
    k.metadata::VARCHAR AS metadata
FROM keys AS k
JOIN job AS j ON j.part = k.part
JOIN rank_frame AS c ON c.part = k.part
