-- Host operators with their position in the call tree, their step and their forward operator.
SELECT
    frame_of($frames, x.event_id).run AS run,
    frame_of($frames, x.event_id).rank AS rank,
    own_id(same_event(same_event(x.event_id, t.event_id), w.event_id)) AS event_id,
    x.ts - frame_of($frames, x.event_id).first_ts AS ts,
    x.dur,
    TRY_CAST(x.pid AS BIGINT) AS pid,
    TRY_CAST(x.tid AS BIGINT) AS tid,
    x.name,
    own_id(t.parent_id) AS parent_id,
    t.depth,
    t.overlaps,
    own_id(t.op_id) AS parent_op_id,
    own_id(t.annotation_id) AS annotation_id,
    own_id(t.module_id) AS module_id,
    own_id(t.frame_id) AS frame_id,
    own_id(w.fwd_op_id) AS fwd_op_id,
    own_id(t.bwd_op_id) AS bwd_op_id,
    own_id(t.stack_id) AS stack_id,
    t.step,
    coalesce(x.ts >= frame_of($frames, x.event_id).last_step_ts, false) AS in_tail,
    x.ts + x.dur = frame_of($frames, x.event_id).window_end_ts AS is_truncated,
    x.* EXCLUDE (event_id, ts, dur, pid, tid, name, args, odd_arguments) REPLACE (
        ranks_in_run(x.pg_ranks, frame_of($frames, x.event_id).first_rank) AS pg_ranks
    )
FROM staged_cpu_ops AS x
POSITIONAL JOIN (FROM call_tree AS c WHERE c.kind = 0) AS t
POSITIONAL JOIN forward_operators AS w
