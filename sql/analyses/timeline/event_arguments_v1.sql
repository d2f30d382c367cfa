-- Arguments of host and device events as the trace has them: a row per event and argument.
--
-- Names are the trace's own, such as "Input Dims" or "blocks per SM", and values are JSON. An argument
-- that is null in the trace is left out. Old spellings get today's name where a column holds them
-- ("external id" of 2021 is "External id", "size" of MTIA is "bytes").
--
-- Status: stable
-- Since: 0.1
-- Reference: HTA ParserConfig(args, parse_all_args)
-- Needs: events
-- Scope: runs, ranks; arguments belong to events, and what has an event says in which step it is
CREATE OR REPLACE MACRO event_arguments_v1(
    -- Runs to include; NULL means every run.
    runs VARCHAR[] := NULL,
    -- Ranks to include; NULL means every rank.
    ranks INTEGER[] := NULL,
    -- Arguments to look for, by their names in the trace; NULL means every argument.
    arguments VARCHAR[] := NULL
) AS TABLE
-- Columns:
--   run         VARCHAR  Run name.
--   rank        INTEGER  Rank of the process.
--   event_id    BIGINT   Position of the event in traceEvents.
--   argument    VARCHAR  Name of the argument.
--   value_json  VARCHAR  Its value as JSON.
WITH
    of_columns AS (
        SELECT
            c.run, c.rank, c.event_id,
            [
                {'argument': 'External id', 'value': c.external_id::VARCHAR},
                {'argument': 'Record function id', 'value': c.record_function_id::VARCHAR},
                {'argument': 'Ev Idx', 'value': c.profiler_event_index::VARCHAR},
                {'argument': 'Sequence number', 'value': c.sequence_number::VARCHAR},
                {'argument': 'Fwd thread id', 'value': c.fwd_thread_id::VARCHAR},
                {'argument': 'Input Dims', 'value': c.input_dims},
                {'argument': 'Input type', 'value': c.input_types},
                {'argument': 'Input Strides', 'value': c.input_strides},
                {'argument': 'Concrete Inputs', 'value': c.concrete_inputs},
                {'argument': 'Call stack', 'value': to_json(c.call_stack)::VARCHAR},
                {'argument': 'Module Hierarchy', 'value': to_json(c.module_hierarchy)::VARCHAR},
                {'argument': 'Collective name', 'value': to_json(c.collective)::VARCHAR},
                {'argument': 'In msg nelems', 'value': c.in_elems::VARCHAR},
                {'argument': 'Out msg nelems', 'value': c.out_elems::VARCHAR},
                {'argument': 'dtype', 'value': to_json(c.elem_type)::VARCHAR},
                {'argument': 'Group size', 'value': c.group_size::VARCHAR},
                {'argument': 'Process Group Name', 'value': to_json(c.pg_name)::VARCHAR},
                {'argument': 'Process Group Description', 'value': to_json(c.pg_desc)::VARCHAR},
                {'argument': 'Process Group Ranks', 'value': to_json(c.pg_ranks)::VARCHAR},
                {'argument': 'Seq', 'value': c.seq::VARCHAR}
            ] AS found
        FROM cpu_ops AS c
        UNION ALL
        SELECT
            g.run, g.rank, g.event_id,
            [
                {'argument': 'External id', 'value': g.external_id::VARCHAR},
                {'argument': 'device', 'value': g.device::VARCHAR},
                {'argument': 'context', 'value': g.context::VARCHAR},
                {'argument': 'stream', 'value': g.stream::VARCHAR},
                {'argument': 'correlation', 'value': g.correlation::VARCHAR},
                {'argument': 'queued', 'value': g.queued_ns::VARCHAR},
                {'argument': 'bytes', 'value': g.bytes::VARCHAR},
                {'argument': 'memory bandwidth (GB/s)', 'value': g.bandwidth_gbps::VARCHAR},
                {'argument': 'registers per thread', 'value': g.registers_per_thread::VARCHAR},
                {'argument': 'shared memory', 'value': g.shared_memory_bytes::VARCHAR},
                {'argument': 'blocks per SM', 'value': g.blocks_per_sm::VARCHAR},
                {'argument': 'warps per SM', 'value': g.warps_per_sm::VARCHAR},
                {'argument': 'est. achieved occupancy %', 'value': g.occupancy_pct::VARCHAR},
                {'argument': 'grid', 'value': '[' || g.grid_x || ',' || g.grid_y || ',' || g.grid_z || ']'},
                {'argument': 'block', 'value': '[' || g.block_x || ',' || g.block_y || ',' || g.block_z || ']'},
                {'argument': 'graph id', 'value': g.graph_id::VARCHAR},
                {'argument': 'graph node id', 'value': g.graph_node_id::VARCHAR},
                {'argument': 'Collective name', 'value': CASE WHEN g.class_source = 'metadata' THEN to_json(g.collective)::VARCHAR END},
                {'argument': 'In msg nelems', 'value': g.in_elems::VARCHAR},
                {'argument': 'Out msg nelems', 'value': g.out_elems::VARCHAR},
                {'argument': 'Group size', 'value': g.group_size::VARCHAR},
                {'argument': 'dtype', 'value': to_json(g.elem_type)::VARCHAR},
                {'argument': 'In split size', 'value': to_json(g.in_split_sizes)::VARCHAR},
                {'argument': 'Out split size', 'value': to_json(g.out_split_sizes)::VARCHAR},
                {'argument': 'Process Group Name', 'value': to_json(g.pg_name)::VARCHAR},
                {'argument': 'Process Group Description', 'value': to_json(g.pg_desc)::VARCHAR},
                {'argument': 'Process Group Ranks', 'value': to_json(g.pg_ranks)::VARCHAR},
                {'argument': 'Seq', 'value': g.seq::VARCHAR},
                {'argument': 'Src Rank', 'value': g.src_rank::VARCHAR},
                {'argument': 'Dst Rank', 'value': g.dst_rank::VARCHAR},
                {'argument': 'cuda_sync_kind', 'value': to_json(g.sync_kind)::VARCHAR},
                {'argument': 'wait_on_stream', 'value': g.wait_on_stream::VARCHAR},
                {'argument': 'wait_on_cuda_event_record_corr_id', 'value': g.wait_on_record_correlation::VARCHAR},
                {'argument': 'wait_on_cuda_event_id', 'value': g.wait_on_event::VARCHAR}
            ]
        FROM gpu_ops AS g
        UNION ALL
        SELECT
            a.run, a.rank, a.event_id,
            [
                {'argument': 'External id', 'value': a.external_id::VARCHAR},
                {'argument': 'Record function id', 'value': a.record_function_id::VARCHAR},
                {'argument': 'Ev Idx', 'value': a.profiler_event_index::VARCHAR}
            ]
        FROM annotations AS a
        UNION ALL
        SELECT
            r.run, r.rank, r.event_id,
            [
                {'argument': 'External id', 'value': r.external_id::VARCHAR},
                {'argument': 'cbid', 'value': r.cbid::VARCHAR},
                {'argument': 'correlation', 'value': r.correlation::VARCHAR}
            ]
        FROM runtime_calls AS r
        UNION ALL
        SELECT
            p.run, p.rank, p.event_id,
            [
                {'argument': 'Python id', 'value': p.python_id::VARCHAR},
                {'argument': 'Python parent id', 'value': p.python_parent_id::VARCHAR},
                {'argument': 'Python module id', 'value': p.python_module_id::VARCHAR},
                {'argument': 'Ev Idx', 'value': p.profiler_event_index::VARCHAR}
            ]
        FROM python_calls AS p
    ),
    -- Where a column cannot hold everything, the whole is kept; what columns hold is there too.
    of_texts AS (
        SELECT x.run, x.rank, x.event_id, x.args
        FROM event_args AS x
        WHERE json_type(x.args) = 'OBJECT'
        UNION ALL
        SELECT o.run, o.rank, o.event_id, o.args
        FROM other_events AS o
        WHERE o.phase = 'X' AND json_type(o.args) = 'OBJECT'
    ),
    keyed AS (
        SELECT t.run, t.rank, t.event_id, t.args, unnest(json_keys(t.args)) AS argument
        FROM of_texts AS t
        WHERE lib.wanted(runs, t.run) AND lib.wanted(ranks, t.rank)
    ),
    pairs AS (
        SELECT
            c.run, c.rank, c.event_id, 1 AS place,
            unnest(list_filter(c.found, lambda f: f.value IS NOT NULL AND lib.wanted(arguments, f.argument))) AS pair
        FROM of_columns AS c
        WHERE lib.wanted(runs, c.run) AND lib.wanted(ranks, c.rank)
        UNION ALL
        SELECT
            k.run, k.rank, k.event_id, 0,
            -- A JSON pointer: no letter of a key means anything else in it.
            {'argument': k.argument, 'value': (k.args -> ('/' || replace(replace(k.argument, '~', '~0'), '/', '~1')))::VARCHAR}
        FROM keyed AS k
        WHERE lib.wanted(arguments, k.argument)
    )
SELECT p.run, p.rank, p.event_id, p.pair.argument AS argument, arg_min(p.pair.value, p.place) AS value_json
FROM pairs AS p
WHERE p.pair.value <> 'null'
GROUP BY p.run, p.rank, p.event_id, p.pair.argument
ORDER BY p.run, p.rank, p.event_id, argument
