-- One row per block in a memory snapshot: a part of a segment, in use or free.
SELECT
    j.run,
    j.rank,
    x.block_id,
    x.segment_id,
    coalesce(s.device, 0) AS device,
    s.stream,
    x.address,
    x.size AS bytes,
    x.requested_size AS requested_bytes,
    x.state,
    x.stack_id
FROM staged_snapshot_blocks AS x
CROSS JOIN job AS j
LEFT JOIN staged_snapshot_segments AS s ON s.segment_id = x.segment_id
ORDER BY x.block_id
