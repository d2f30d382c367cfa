-- Device activity with its class, its launch and, through the launch, its operator, annotation,
-- module and step.
--
-- kind says what the hardware did, class what it was for. Class: the collective metadata of the
-- profiler first, then the category (copies, memsets and syncs need no name), then the name rules,
-- else computation; class_source says which of them decided, so that a result can tell how much
-- of it rests on "no rule knew the name".
WITH
    classified AS (
        SELECT
            x.*,
            c.rule.collective AS rule_collective,
            CASE
                WHEN c.rule.class = 'sync' THEN 'sync'
                ELSE category_kind(x.cat)
            END AS kind,
            CASE
                WHEN x.collective IS NOT NULL THEN 'metadata'
                WHEN category_kind(x.cat) <> 'kernel' THEN 'category'
                WHEN c.rule IS NOT NULL THEN 'rule'
                ELSE 'default'
            END AS class_source,
            CASE
                WHEN x.collective IS NOT NULL THEN 'communication'
                WHEN category_kind(x.cat) = 'sync' THEN 'sync'
                WHEN category_kind(x.cat) <> 'kernel' THEN 'memory'
                ELSE coalesce(c.rule.class, 'computation')
            END AS class
        FROM staged_gpu_ops AS x
        LEFT JOIN kernel_classes AS c ON c.name = x.name
    )
SELECT
    j.run,
    j.rank,
    own_id(x.event_id) AS event_id,
    x.ts - j.first_ts AS ts,
    x.dur,
    -- Recorders sometimes write durations that cannot be: 7 of 55,423 kernels once made up 62 % of
    -- all GPU time. Ending a second after the recording is beyond any flush or clock skew.
    coalesce(x.dur < 0 OR x.ts + x.dur > j.recording_end_ts + 1_000_000_000, false) AS is_suspect,
    x.kind,
    x.class,
    x.class_source,
    x.name,
    own_id(l.call.id) AS launch_id,
    l.call.ts - j.first_ts AS launch_ts,
    l.call.dur AS launch_dur,
    l.call.pid AS launch_pid,
    l.call.tid AS launch_tid,
    own_id(coalesce(l.op_id, o.op_id)) AS op_id,
    own_id(l.annotation_id) AS annotation_id,
    own_id(l.module_id) AS module_id,
    own_id(l.bwd_op_id) AS bwd_op_id,
    own_id(l.stack_id) AS stack_id,
    coalesce(l.step, d.step) AS step,
    coalesce(coalesce(l.call.ts, x.ts) >= j.last_step_ts, false) AS in_tail,
    x.grid[1] AS grid_x,
    x.grid[2] AS grid_y,
    x.grid[3] AS grid_z,
    x.block[1] AS block_x,
    x.block[2] AS block_y,
    x.block[3] AS block_z,
    x.* EXCLUDE (
        event_id, ts, dur, pid, tid, name, cat, args, grid, block, rule_collective, kind, class_source, class
    ) REPLACE (
        coalesce(x.device, TRY_CAST(x.pid AS BIGINT)) AS device,
        -- The lanes of MTIA are no streams: a transfer without the argument is on none.
        CASE WHEN lane_is_stream(x.cat) THEN coalesce(x.stream, TRY_CAST(x.tid AS BIGINT)) ELSE x.stream END AS stream,
        coalesce(x.collective, x.rule_collective) AS collective
    )
FROM classified AS x
JOIN rank_frame AS j ON j.part = part_of(x.event_id)
LEFT JOIN launches AS l ON l.correlation = x.correlation AND l.part = part_of(x.event_id)
LEFT JOIN operators_by_external_id AS o ON o.external_id = x.external_id AND o.part = part_of(x.event_id) AND l.correlation IS NULL
LEFT JOIN device_steps AS d ON d.event_id = x.event_id
ORDER BY x.event_id
