-- Device activity with its class and launch and, through the launch, its operator, annotation, module and step.
SELECT
    frame_of($frames, x.event_id).run AS run,
    frame_of($frames, x.event_id).rank AS rank,
    own_id(same_event(x.event_id, l.event_id)) AS event_id,
    x.ts - frame_of($frames, x.event_id).first_ts AS ts,
    x.dur,
    -- Recorders sometimes write impossible durations: 7 of 55,423 kernels once made up 62 % of all GPU time. An end
    -- more than a second after the recording exceeds any flush delay or clock skew.
    coalesce(x.dur < 0 OR x.ts + x.dur > frame_of($frames, x.event_id).recording_end_ts + 1_000_000_000, false) AS is_suspect,
    l.kind,
    l.class,
    l.class_source,
    l.library AS comm_library,
    l.role AS comm_role,
    x.name,
    own_id(l.call.id) AS launch_id,
    l.call.ts - frame_of($frames, x.event_id).first_ts AS launch_ts,
    l.call.dur AS launch_dur,
    l.call.pid AS launch_pid,
    l.call.tid AS launch_tid,
    own_id(l.op_id) AS op_id,
    own_id(l.annotation_id) AS annotation_id,
    own_id(l.module_id) AS module_id,
    own_id(l.bwd_op_id) AS bwd_op_id,
    own_id(l.stack_id) AS stack_id,
    l.step,
    coalesce(coalesce(l.call.ts, x.ts) >= frame_of($frames, x.event_id).last_step_ts, false) AS in_tail,
    x.grid[1] AS grid_x,
    x.grid[2] AS grid_y,
    x.grid[3] AS grid_z,
    x.block[1] AS block_x,
    x.block[2] AS block_y,
    x.block[3] AS block_z,
    x.* EXCLUDE (event_id, ts, dur, pid, tid, name, cat, args, odd_arguments, grid, block, hardware_stream) REPLACE (
        coalesce(x.device, TRY_CAST(x.pid AS BIGINT)) AS device,
        -- MTIA lanes are not streams: a transfer without a stream argument belongs to no stream. PyTorch may move the
        -- replays of a graph to lanes for display, and then keeps the stream in another argument.
        CASE
            WHEN x.hardware_stream IS NOT NULL THEN x.hardware_stream
            WHEN lane_is_stream(x.cat) THEN coalesce(x.stream, TRY_CAST(x.tid AS BIGINT))
            ELSE x.stream
        END AS stream,
        l.collective AS collective,
        ranks_in_run(x.pg_ranks, frame_of($frames, x.event_id).first_rank) AS pg_ranks,
        end_in_run(
            x.src_rank, x.dst_rank, x.pg_ranks, frame_of($frames, x.event_id).rank - frame_of($frames, x.event_id).first_rank,
            frame_of($frames, x.event_id).first_rank
        ) AS src_rank,
        end_in_run(
            x.dst_rank, x.src_rank, x.pg_ranks, frame_of($frames, x.event_id).rank - frame_of($frames, x.event_id).first_rank,
            frame_of($frames, x.event_id).first_rank
        ) AS dst_rank
    )
FROM staged_gpu_ops AS x
POSITIONAL JOIN device_links AS l
