-- User annotations. Those on the device have no place in a host call tree.
SELECT
    j.run,
    j.rank,
    x.event_id,
    x.ts - j.first_ts AS ts,
    x.dur,
    TRY_CAST(x.pid AS BIGINT) AS pid,
    TRY_CAST(x.tid AS BIGINT) AS tid,
    x.name,
    x.cat <> 'user_annotation' AS on_gpu,
    t.parent_id,
    t.depth,
    t.overlaps,
    t.annotation_id AS parent_annotation_id,
    t.op_id,
    t.module_id,
    t.frame_id,
    t.stack_id,
    coalesce(t.step, d.step) AS step,
    coalesce(x.ts >= j.last_step_ts, false) AS in_tail,
    x.ts + x.dur = j.window_end_ts AS is_truncated,
    x.* EXCLUDE (event_id, ts, dur, pid, tid, name, cat, args)
FROM staged_annotations AS x
CROSS JOIN rank_frame AS j
LEFT JOIN call_tree AS t ON t.event_id = x.event_id
LEFT JOIN device_steps AS d ON d.event_id = x.event_id
ORDER BY x.event_id
