-- Allocator events with the enclosing operator, annotation and module.
SELECT
    frame_of($frames, x.event_id).run AS run,
    frame_of($frames, x.event_id).rank AS rank,
    own_id(same_event(x.event_id, t.event_id)) AS event_id,
    x.ts - frame_of($frames, x.event_id).first_ts AS ts,
    TRY_CAST(x.pid AS BIGINT) AS pid,
    TRY_CAST(x.tid AS BIGINT) AS tid,
    own_id(t.parent_id) AS parent_id,
    own_id(t.op_id) AS op_id,
    own_id(t.annotation_id) AS annotation_id,
    own_id(t.module_id) AS module_id,
    own_id(t.frame_id) AS frame_id,
    own_id(t.stack_id) AS stack_id,
    t.step,
    coalesce(x.ts >= frame_of($frames, x.event_id).last_step_ts, false) AS in_tail,
    x.* EXCLUDE (event_id, ts, dur, pid, tid, name, args, odd_arguments)
FROM staged_memory_events AS x
POSITIONAL JOIN (FROM call_tree AS c WHERE c.kind = 6) AS t
