-- Host operators with their place in the call tree, their step and their forward operator.
SELECT
    j.run,
    j.rank,
    x.event_id,
    x.ts - j.first_ts AS ts,
    x.dur,
    TRY_CAST(x.pid AS BIGINT) AS pid,
    TRY_CAST(x.tid AS BIGINT) AS tid,
    x.name,
    t.parent_id,
    t.depth,
    t.overlaps,
    t.op_id AS parent_op_id,
    t.annotation_id,
    t.module_id,
    t.frame_id,
    f.fwd_op_id,
    t.bwd_op_id,
    t.stack_id,
    t.step,
    coalesce(x.ts >= j.last_step_ts, false) AS in_tail,
    x.ts + x.dur = j.window_end_ts AS is_truncated,
    x.* EXCLUDE (event_id, ts, dur, pid, tid, name, args)
FROM staged_cpu_ops AS x
CROSS JOIN rank_frame AS j
LEFT JOIN call_tree AS t ON t.event_id = x.event_id AND t.kind = 0
LEFT JOIN forward_operators AS f ON f.event_id = x.event_id
ORDER BY x.event_id
