-- Allocator events with the operator, annotation and module inside which they happened.
SELECT
    j.run,
    j.rank,
    own_id(x.event_id) AS event_id,
    x.ts - j.first_ts AS ts,
    TRY_CAST(x.pid AS BIGINT) AS pid,
    TRY_CAST(x.tid AS BIGINT) AS tid,
    own_id(t.parent_id) AS parent_id,
    own_id(t.op_id) AS op_id,
    own_id(t.annotation_id) AS annotation_id,
    own_id(t.module_id) AS module_id,
    own_id(t.frame_id) AS frame_id,
    own_id(t.stack_id) AS stack_id,
    t.step,
    coalesce(x.ts >= j.last_step_ts, false) AS in_tail,
    x.* EXCLUDE (event_id, ts, dur, pid, tid, name, args)
FROM staged_memory_events AS x
JOIN rank_frame AS j ON j.part = part_of(x.event_id)
LEFT JOIN call_tree AS t ON t.event_id = x.event_id AND t.kind = 6
ORDER BY x.event_id
