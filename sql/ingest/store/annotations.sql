-- User annotations. Annotations on the device are not part of a host call tree.
SELECT
    j.run,
    j.rank,
    own_id(x.event_id) AS event_id,
    x.ts - j.first_ts AS ts,
    x.dur,
    TRY_CAST(x.pid AS BIGINT) AS pid,
    TRY_CAST(x.tid AS BIGINT) AS tid,
    x.name,
    x.cat <> 'user_annotation' AS on_gpu,
    own_id(t.parent_id) AS parent_id,
    t.depth,
    t.overlaps,
    own_id(t.annotation_id) AS parent_annotation_id,
    own_id(t.op_id) AS op_id,
    own_id(t.module_id) AS module_id,
    own_id(t.frame_id) AS frame_id,
    own_id(t.stack_id) AS stack_id,
    coalesce(t.step, d.step) AS step,
    coalesce(x.ts >= j.last_step_ts, false) AS in_tail,
    x.ts + x.dur = j.window_end_ts AS is_truncated,
    x.* EXCLUDE (event_id, ts, dur, pid, tid, name, cat, args, odd_arguments)
FROM staged_annotations AS x
JOIN rank_frame AS j ON j.part = part_of(x.event_id)
LEFT JOIN call_tree AS t ON t.event_id = x.event_id
LEFT JOIN device_steps AS d ON d.event_id = x.event_id
ORDER BY x.event_id
