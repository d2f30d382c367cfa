-- Communication kernels, and gloo calls on the host, with the collective and group. Both are taken from the arguments
-- of the kernel or call, otherwise from the launching operator, otherwise from the name.
--
-- Different spellings are unified, such as allreduce_, _allgather_base, alltoall_base and HcclAllreduce. An
-- all-to-all runs in a kernel named SendRecv; the operator around record_param_comms identifies it.
CREATE OR REPLACE MACRO lib._collective_calls(
    runs
) AS TABLE
-- Columns:
--   run              VARCHAR         Run name.
--   rank             INTEGER         Rank of the process.
--   span             INTEGER         Recording of the rank.
--   event_id         BIGINT          event_id of the kernel, or of the annotation for gloo.
--   ts               BIGINT [ns]     Start, relative to the run's first event.
--   dur              BIGINT [ns]     Duration.
--   launch_ts        BIGINT [ns]     Start of the launch; NULL if the launch is not in the trace, and for gloo on the host.
--   on_host          BOOLEAN         Whether gloo ran the collective on the host, without a kernel.
--   device           BIGINT          Device number.
--   stream           BIGINT          Device stream.
--   step             BIGINT          Profiler step of the launch.
--   in_last_step     BOOLEAN         Whether it starts in or after the rank's last step.
--   op_id            BIGINT          event_id of the innermost operator that encloses the launch.
--   module_id        BIGINT          event_id of the innermost nn.Module call that encloses the launch.
--   collective       VARCHAR         Kind of collective: all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, send, recv, …
--   label_id         UBIGINT         Number of the distinct group label, which consists of rank, stream, recorded group name, ranks and size, sender and receiver.
--   detected_by      VARCHAR         Source of the kind of collective: metadata, operator or name.
--   shape_id         INTEGER         Number of the kernel function; equal on all ranks of a collective.
--   pg_name          VARCHAR         Process group name.
--   pg_desc          VARCHAR         Process group description.
--   pg_ranks         VARCHAR         Recorded global ranks of the process group.
--   group_size       BIGINT [count]  Number of ranks in the process group.
--   elem_type        VARCHAR         Element type.
--   in_elems         BIGINT [count]  Number of elements sent.
--   out_elems        BIGINT [count]  Number of elements received.
--   in_split_sizes   VARCHAR         Split sizes of the input as JSON.
--   out_split_sizes  VARCHAR         Split sizes of the output as JSON.
--   seq              BIGINT          Sequence number of the collective in its process group.
--   src_rank         BIGINT          Sending rank of a point-to-point operation.
--   dst_rank         BIGINT          Receiving rank of a point-to-point operation.
WITH
    _ops AS MATERIALIZED (
        SELECT
            c.run, c.rank, c.event_id, c.name, c.parent_op_id, c.collective, c.pg_name, c.pg_desc, c.pg_ranks, c.group_size,
            c.elem_type, c.in_elems, c.out_elems, c.seq
        FROM cpu_ops AS c
        WHERE
            lib.is_requested(runs, c.run)
            AND (
                c.collective IS NOT NULL
                OR c.name = 'record_param_comms'
                OR starts_with(c.name, 'c10d::') OR starts_with(c.name, 'nccl:')
                OR starts_with(c.name, 'hccl') OR starts_with(c.name, 'gloo:')
            )
    ),
    _kernels AS MATERIALIZED (
        SELECT
            g.run, g.rank, g.span, g.event_id, g.ts, g.dur, g.launch_ts, false AS on_host, g.device, g.stream, g.step, g.in_last_step, g.op_id, g.module_id,
            g.name AS kernel,
            CASE WHEN g.class_source = 'metadata' THEN g.collective END AS recorded,
            g.collective AS named,
            o.collective AS op_collective,
            coalesce(CASE WHEN o.name = 'record_param_comms' THEN q.name END, o.name) AS op_name,
            coalesce(g.pg_name, o.pg_name) AS pg_name,
            coalesce(g.pg_desc, o.pg_desc) AS pg_desc,
            coalesce(g.pg_ranks, o.pg_ranks) AS pg_ranks,
            coalesce(g.group_size, o.group_size) AS group_size,
            coalesce(g.elem_type, o.elem_type) AS elem_type,
            coalesce(g.in_elems, o.in_elems) AS in_elems,
            coalesce(g.out_elems, o.out_elems) AS out_elems,
            g.in_split_sizes, g.out_split_sizes,
            coalesce(g.seq, o.seq) AS seq,
            g.src_rank, g.dst_rank
        FROM gpu_ops AS g
        LEFT JOIN _ops AS o ON o.run = g.run AND o.rank = g.rank AND o.event_id = g.op_id
        LEFT JOIN _ops AS q ON q.run = o.run AND q.rank = o.rank AND q.event_id = o.parent_op_id
        WHERE g.class = 'communication' AND NOT g.is_suspect AND lib.is_requested(runs, g.run)
        UNION ALL BY NAME
        SELECT
            c.run, c.rank, c.span, c.event_id, c.ts, c.dur, true AS on_host, c.step, c.in_last_step, c.op_id,
            c.name AS kernel, c.collective AS op_collective, c.name AS op_name,
            c.pg_name, c.pg_desc, c.pg_ranks, c.group_size, c.elem_type, c.in_elems, c.src_rank, c.dst_rank
        FROM lib._gloo_calls(runs) AS c
    ),
    -- Evaluate string expressions once per name instead of once per row.
    _spellings AS (
        SELECT DISTINCT
            k.kernel, k.recorded, k.named, k.op_collective, k.op_name,
            coalesce(k.recorded, k.op_collective, nullif(regexp_extract(k.op_name, '^(?:c10d|nccl|gloo|hccl)[:]+_?(\w+?)_?$', 1), ''))
                AS said
        FROM _kernels AS k
    ),
    _folded AS (
        SELECT
            s.*,
            lower(regexp_replace(coalesce(s.said, s.named, s.kernel), '_|base|coalesced|tensor|into|single', '', 'gi')) AS folded
        FROM _spellings AS s
    ),
    _named AS (
        SELECT
            f.*,
            CASE
                WHEN f.folded LIKE '%alltoall%' THEN 'all_to_all'
                WHEN f.folded LIKE '%allreduce%' THEN 'all_reduce'
                WHEN f.folded LIKE '%allgather%' THEN 'all_gather'
                WHEN f.folded LIKE '%reducescatter%' THEN 'reduce_scatter'
                WHEN f.folded LIKE '%broadcast%' THEN 'broadcast'
                WHEN f.folded LIKE '%sendrecv%' THEN 'send_recv'
                WHEN f.folded LIKE '%send%' THEN 'send'
                WHEN f.folded LIKE '%recv%' OR f.folded LIKE '%receive%' THEN 'recv'
                WHEN f.folded LIKE '%reduce%' THEN 'reduce'
                WHEN f.folded LIKE '%barrier%' THEN 'barrier'
                WHEN f.folded LIKE '%gather%' THEN 'gather'
                WHEN f.folded LIKE '%scatter%' THEN 'scatter'
                ELSE coalesce(f.said, f.named)
            END AS collective,
            CASE WHEN f.recorded IS NOT NULL THEN 'metadata' WHEN f.said IS NOT NULL THEN 'operator' ELSE 'name' END AS detected_by,
            -- Name without numbers (hcom_allReduce__538_0_1) and template arguments.
            (hash(regexp_replace(regexp_replace(f.kernel, '[<(].*$', ''), '\d+', '#', 'g')) % 1000000007)::INTEGER AS shape_id
        FROM _folded AS f
    )
SELECT
    k.run, k.rank, k.span, k.event_id, k.ts, k.dur, k.launch_ts, k.on_host, k.device, k.stream, k.step, k.in_last_step, k.op_id, k.module_id,
    n.collective,
    hash((
        k.run, k.rank, k.span, k.device, k.stream, k.pg_name, k.pg_ranks, k.group_size, k.src_rank, k.dst_rank,
        CASE WHEN n.collective IN ('send', 'recv') THEN n.collective END
    )) AS label_id,
    n.detected_by, n.shape_id,
    k.pg_name, k.pg_desc, k.pg_ranks, k.group_size, k.elem_type, k.in_elems, k.out_elems, k.in_split_sizes, k.out_split_sizes,
    k.seq, k.src_rank, k.dst_rank
FROM _kernels AS k
JOIN _named AS n
    ON n.kernel = k.kernel
    AND n.recorded IS NOT DISTINCT FROM k.recorded
    AND n.named IS NOT DISTINCT FROM k.named
    AND n.op_collective IS NOT DISTINCT FROM k.op_collective
    AND n.op_name IS NOT DISTINCT FROM k.op_name
