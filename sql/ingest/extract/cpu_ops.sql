-- Host operators of one batch.
--
-- `args` stays only where it says more than the columns do: a key that no column holds, a null, or
-- a value that did not fit its column. 2021 traces spell some keys in lower case.
WITH
    decoded AS (
        SELECT
            e.*,
            from_json(
                exact_args(e.args, 'External id|Record function id|Ev Idx|Sequence number|Fwd thread id|In msg nelems|Out msg nelems|Group size|Seq'),
                '{"External id": "BIGINT", "Record function id": "BIGINT", "Ev Idx": "BIGINT", "Sequence number": "BIGINT", "Fwd thread id": "BIGINT", "Input Dims": "VARCHAR", "Input type": "VARCHAR", "Input Strides": "VARCHAR", "Concrete Inputs": "VARCHAR", "Call stack": "VARCHAR", "Module Hierarchy": "VARCHAR", "Collective name": "VARCHAR", "In msg nelems": "BIGINT", "Out msg nelems": "BIGINT", "Group size": "BIGINT", "dtype": "VARCHAR", "Process Group Name": "VARCHAR", "Process Group Description": "VARCHAR", "Process Group Ranks": "VARCHAR", "Seq": "BIGINT"}'
            ) AS a
        FROM batch_events AS e
        WHERE e.target = 'cpu_ops'
    ),
    columns AS (
        SELECT
            d.event_id,
            d.ts,
            d.dur,
            d.pid,
            d.tid,
            d.name,
            d.args,
            d.a['External id'] AS external_id,
            d.a['Record function id'] AS record_function_id,
            d.a['Ev Idx'] AS profiler_event_index,
            d.a['Sequence number'] AS sequence_number,
            d.a['Fwd thread id'] AS fwd_thread_id,
            coalesce(d.a['Input Dims'], CASE WHEN d.cat = 'Operator' THEN d.args ->> '$."Input dims"' END) AS input_dims,
            d.a['Input type'] AS input_types,
            d.a['Input Strides'] AS input_strides,
            d.a['Concrete Inputs'] AS concrete_inputs,
            d.a['Call stack'] AS call_stack,
            d.a['Module Hierarchy'] AS module_hierarchy,
            d.a['Collective name'] AS collective,
            d.a['In msg nelems'] AS in_elems,
            d.a['Out msg nelems'] AS out_elems,
            d.a['dtype'] AS elem_type,
            d.a['Group size'] AS group_size,
            d.a['Process Group Name'] AS pg_name,
            d.a['Process Group Description'] AS pg_desc,
            d.a['Process Group Ranks'] AS pg_ranks,
            d.a['Seq'] AS seq
        FROM decoded AS d
    )
SELECT
    c.* EXCLUDE (args),
    CASE
        WHEN NOT starts_with(c.args, '{') OR len(json_keys(c.args)) <> (
            (c.external_id IS NOT NULL)::INTEGER + (c.record_function_id IS NOT NULL)::INTEGER
            + (c.profiler_event_index IS NOT NULL)::INTEGER + (c.sequence_number IS NOT NULL)::INTEGER
            + (c.fwd_thread_id IS NOT NULL)::INTEGER + (c.input_dims IS NOT NULL)::INTEGER
            + (c.input_types IS NOT NULL)::INTEGER + (c.input_strides IS NOT NULL)::INTEGER
            + (c.concrete_inputs IS NOT NULL)::INTEGER + (c.call_stack IS NOT NULL)::INTEGER
            + (c.module_hierarchy IS NOT NULL)::INTEGER + (c.collective IS NOT NULL)::INTEGER
            + (c.in_elems IS NOT NULL)::INTEGER + (c.out_elems IS NOT NULL)::INTEGER
            + (c.elem_type IS NOT NULL)::INTEGER + (c.group_size IS NOT NULL)::INTEGER
            + (c.pg_name IS NOT NULL)::INTEGER + (c.pg_desc IS NOT NULL)::INTEGER
            + (c.pg_ranks IS NOT NULL)::INTEGER + (c.seq IS NOT NULL)::INTEGER
        ) THEN c.args
    END AS args
FROM columns AS c
