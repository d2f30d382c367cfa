-- Device activity of one batch: kernels, copies, memsets and device-side synchronisation.
--
-- GPU rows carry their device as pid and their stream as tid (but for MTIA); the arguments win where
-- both are there. `bytes` is called `size` by MTIA. 2021 traces spell "external id" in lower case.
WITH
    decoded AS (
        SELECT
            e.*,
            from_json(
                exact_args(e.args, 'External id|device|context|stream|correlation|queued|bytes|registers per thread|shared memory|grid|block|graph id|graph node id|In msg nelems|Out msg nelems|Group size|Seq|Src Rank|Dst Rank|wait_on_stream|wait_on_cuda_event_record_corr_id|wait_on_cuda_event_id'),
                '{"External id": "BIGINT", "device": "BIGINT", "context": "BIGINT", "stream": "BIGINT", "correlation": "BIGINT", "queued": "BIGINT", "bytes": "BIGINT", "memory bandwidth (GB/s)": "DOUBLE", "registers per thread": "BIGINT", "shared memory": "BIGINT", "blocks per SM": "DOUBLE", "warps per SM": "DOUBLE", "est. achieved occupancy %": "DOUBLE", "grid": "BIGINT[]", "block": "BIGINT[]", "graph id": "BIGINT", "graph node id": "BIGINT", "Collective name": "VARCHAR", "In msg nelems": "BIGINT", "Out msg nelems": "BIGINT", "Group size": "BIGINT", "dtype": "VARCHAR", "In split size": "VARCHAR", "Out split size": "VARCHAR", "Process Group Name": "VARCHAR", "Process Group Description": "VARCHAR", "Process Group Ranks": "VARCHAR", "Seq": "BIGINT", "Src Rank": "BIGINT", "Dst Rank": "BIGINT", "cuda_sync_kind": "VARCHAR", "wait_on_stream": "BIGINT", "wait_on_cuda_event_record_corr_id": "BIGINT", "wait_on_cuda_event_id": "BIGINT"}'
            ) AS a
        FROM batch_events AS e
        WHERE e.target = 'gpu_ops'
    ),
    columns AS (
        SELECT
            d.event_id,
            d.ts,
            d.dur,
            d.pid,
            d.tid,
            d.name,
            d.cat,
            coalesce(d.a['External id'], CASE WHEN d.cat IN ('Kernel', 'Memcpy', 'Memset') THEN TRY_CAST(exact_args(d.args, 'external id') ->> '$."external id"' AS BIGINT) END) AS external_id,
            d.a['device'] AS device,
            d.a['context'] AS context,
            d.a['stream'] AS stream,
            d.a['correlation'] AS correlation,
            d.a['queued'] AS queued,
            coalesce(d.a['bytes'], CASE WHEN d.cat = 'mtia_ccp_events' THEN TRY_CAST(exact_args(d.args, 'size') ->> '$.size' AS BIGINT) END) AS bytes,
            CASE WHEN isfinite(d.a['memory bandwidth (GB/s)']) THEN d.a['memory bandwidth (GB/s)'] END AS bandwidth_gbps,
            d.a['registers per thread'] AS registers_per_thread,
            d.a['shared memory'] AS shared_memory_bytes,
            CASE WHEN isfinite(d.a['blocks per SM']) THEN d.a['blocks per SM'] END AS blocks_per_sm,
            CASE WHEN isfinite(d.a['warps per SM']) THEN d.a['warps per SM'] END AS warps_per_sm,
            CASE WHEN isfinite(d.a['est. achieved occupancy %']) THEN d.a['est. achieved occupancy %'] END AS occupancy_pct,
            d.a['grid'] AS grid,
            d.a['block'] AS block,
            d.a['graph id'] AS graph_id,
            d.a['graph node id'] AS graph_node_id,
            d.a['Collective name'] AS collective,
            d.a['In msg nelems'] AS in_elems,
            d.a['Out msg nelems'] AS out_elems,
            d.a['dtype'] AS elem_type,
            d.a['Group size'] AS group_size,
            d.a['In split size'] AS in_split_sizes,
            d.a['Out split size'] AS out_split_sizes,
            d.a['Process Group Name'] AS pg_name,
            d.a['Process Group Description'] AS pg_desc,
            d.a['Process Group Ranks'] AS pg_ranks,
            d.a['Seq'] AS seq,
            d.a['Src Rank'] AS src_rank,
            d.a['Dst Rank'] AS dst_rank,
            d.a['cuda_sync_kind'] AS sync_kind,
            d.a['wait_on_stream'] AS wait_on_stream,
            d.a['wait_on_cuda_event_record_corr_id'] AS wait_on_record_correlation,
            d.a['wait_on_cuda_event_id'] AS wait_on_event,
            d.args
        FROM decoded AS d
    )
SELECT
    c.* EXCLUDE (args),
    CASE
        WHEN NOT starts_with(c.args, '{') OR len(json_keys(c.args)) <> (
            (c.external_id IS NOT NULL)::INTEGER + (c.device IS NOT NULL)::INTEGER
            + (c.context IS NOT NULL)::INTEGER + (c.stream IS NOT NULL)::INTEGER
            + (c.correlation IS NOT NULL)::INTEGER + (c.queued IS NOT NULL)::INTEGER
            + (c.bytes IS NOT NULL)::INTEGER + (c.bandwidth_gbps IS NOT NULL)::INTEGER
            + (c.registers_per_thread IS NOT NULL)::INTEGER + (c.shared_memory_bytes IS NOT NULL)::INTEGER
            + (c.blocks_per_sm IS NOT NULL)::INTEGER + (c.warps_per_sm IS NOT NULL)::INTEGER
            + (c.occupancy_pct IS NOT NULL)::INTEGER + (c.grid IS NOT NULL AND list_count(c.grid) = 3 AND len(c.grid) = 3)::INTEGER
            + (c.block IS NOT NULL AND list_count(c.block) = 3 AND len(c.block) = 3)::INTEGER + (c.graph_id IS NOT NULL)::INTEGER
            + (c.graph_node_id IS NOT NULL)::INTEGER + (c.collective IS NOT NULL)::INTEGER
            + (c.in_elems IS NOT NULL)::INTEGER + (c.out_elems IS NOT NULL)::INTEGER
            + (c.elem_type IS NOT NULL)::INTEGER + (c.group_size IS NOT NULL)::INTEGER
            + (c.in_split_sizes IS NOT NULL)::INTEGER + (c.out_split_sizes IS NOT NULL)::INTEGER
            + (c.pg_name IS NOT NULL)::INTEGER + (c.pg_desc IS NOT NULL)::INTEGER
            + (c.pg_ranks IS NOT NULL)::INTEGER + (c.seq IS NOT NULL)::INTEGER
            + (c.src_rank IS NOT NULL)::INTEGER + (c.dst_rank IS NOT NULL)::INTEGER
            + (c.sync_kind IS NOT NULL)::INTEGER + (c.wait_on_stream IS NOT NULL)::INTEGER
            + (c.wait_on_record_correlation IS NOT NULL)::INTEGER + (c.wait_on_event IS NOT NULL)::INTEGER
        ) THEN c.args
    END AS args
FROM columns AS c
