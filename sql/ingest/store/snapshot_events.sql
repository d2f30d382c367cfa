-- One row per allocator event in a memory snapshot.
SELECT
    j.run,
    j.rank,
    x.event_id,
    x.device,
    x.stream,
    x.action,
    TRY_CAST(x.time_us::HUGEINT * 1000 AS BIGINT) AS time_ns,
    x.address,
    x.size AS bytes,
    x.device_free AS device_free_bytes,
    x.compile_context,
    x.user_metadata,
    x.stack_id
FROM staged_snapshot_events AS x
CROSS JOIN job AS j
ORDER BY x.event_id
