-- One row per segment in a memory snapshot: memory that the allocator reserved from the device at once.
SELECT
    j.run,
    j.rank,
    x.segment_id,
    coalesce(x.device, 0) AS device,
    x.stream,
    x.address,
    x.size AS bytes,
    x.allocated_size AS allocated_bytes,
    x.active_size AS active_bytes,
    x.requested_size AS requested_bytes,
    x.block_count,
    x.segment_type,
    x.pool AS pool_id,
    x.is_expandable,
    x.stack_id
FROM staged_snapshot_segments AS x
CROSS JOIN job AS j
ORDER BY x.segment_id
