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
    f.fwd_op_id,
    t.step,
    coalesce(x.ts >= j.last_step_ts, false) AS in_tail,
    x.external_id,
    x.record_function_id,
    x.profiler_event_index,
    x.sequence_number,
    x.fwd_thread_id,
    x.input_dims,
    x.input_types,
    x.input_strides,
    x.concrete_inputs,
    x.call_stack,
    x.module_hierarchy,
    x.collective,
    x.in_elems,
    x.out_elems,
    x.elem_type,
    x.group_size,
    x.pg_name,
    x.pg_desc,
    x.pg_ranks,
    x.seq
FROM staged_cpu_ops AS x
CROSS JOIN rank_frame AS j
LEFT JOIN call_tree AS t ON t.event_id = x.event_id AND t.kind = 0
LEFT JOIN forward_operators AS f ON f.event_id = x.event_id
ORDER BY x.event_id
