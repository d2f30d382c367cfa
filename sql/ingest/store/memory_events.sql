-- Allocator events with the operator, annotation and module inside which they happened.
SELECT
    j.run,
    j.rank,
    x.event_id,
    x.ts - j.first_ts AS ts,
    TRY_CAST(x.pid AS BIGINT) AS pid,
    TRY_CAST(x.tid AS BIGINT) AS tid,
    x.device_type,
    x.device,
    x.addr,
    x.bytes,
    x.total_allocated_bytes,
    x.total_reserved_bytes,
    t.parent_id,
    t.op_id,
    t.annotation_id,
    t.module_id,
    t.step,
    coalesce(x.ts >= j.last_step_ts, false) AS in_tail,
    x.profiler_event_index
FROM staged_memory_events AS x
CROSS JOIN rank_frame AS j
LEFT JOIN call_tree AS t ON t.event_id = x.event_id AND t.kind = 6
ORDER BY x.event_id
