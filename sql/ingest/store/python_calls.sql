-- Python frames with their place in the call tree.
CREATE OR REPLACE TEMP VIEW stored_python_calls AS
SELECT
    j.run,
    j.rank,
    x.event_id,
    x.ts - k.first_ts AS ts,
    x.dur,
    TRY_CAST(x.pid AS BIGINT) AS pid,
    TRY_CAST(x.tid AS BIGINT) AS tid,
    x.name,
    t.parent_id,
    t.depth,
    t.overlaps,
    t.module_id AS parent_module_id,
    s.step,
    coalesce(x.ts >= l.last_step_ts, false) AS in_tail,
    x.python_id,
    x.python_parent_id,
    x.python_module_id,
    x.profiler_event_index
FROM staged_python_calls AS x
CROSS JOIN job AS j
CROSS JOIN rank_clock AS k
LEFT JOIN call_tree AS t ON t.event_id = x.event_id
CROSS JOIN last_step AS l
LEFT JOIN step_windows AS s ON x.ts >= s.ts AND x.ts < s.end_ts
ORDER BY x.event_id
