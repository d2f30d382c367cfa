-- Kernel sequences launched by each operator: number of calls, and the delays before the first kernel.
--
-- A launch belongs to the innermost enclosing operator on its own thread whose name starts with operator_prefix. The
-- sequence of a call is its kernels in launch order; calls with the same name and sequence share a row. Launches are
-- matched by correlation id, whatever their name; a graph launch contributes all kernels of the graph. HTA uses the
-- operator that started last on any thread (Q38), and repeats the launches of all earlier ranks in the rows of a rank
-- (Q39).
--
-- Title: Kernel sequences of each operator
-- Shown: rank, device_sum_ns, operator_name, kernel_sequence, call_count, launch_delay_ns, queue_delay_ns
-- Status: stable
-- Since: 0.1
-- Reference: HTA get_aten_op_kernels_and_delay
-- Needs: GPU activity, operators and runtime calls
-- Report: at most 64 ranks
CREATE OR REPLACE MACRO aten_op_kernels_and_delay_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false,
    -- Prefix of the operator names to include; empty means every operator.
    operator_prefix VARCHAR := 'aten::',
    -- Whether sequences include copies and memsets.
    include_memory_events BOOLEAN := false
) AS TABLE
-- Columns:
--   run              VARCHAR         Run name.
--   rank             INTEGER         Rank of the process.
--   operator_name    VARCHAR         Name of the operator.
--   kernel_sequence  VARCHAR         Names of the operations that one call launches, joined by ' -> '.
--   kernel_count     BIGINT [count]  Number of operations in the sequence.
--   call_count       BIGINT [count]  Number of calls of the operator with this sequence.
--   launch_delay_ns  DOUBLE [ns]     Mean time from the start of the operator to the start of its first launch.
--   queue_delay_ns   DOUBLE [ns]     Mean time from the start of the first launch to the start of the launched operation.
--   host_sum_ns      BIGINT [ns]     Total host duration of the calls in the row.
--   device_sum_ns    BIGINT [ns]     Total duration of the operations launched by the calls in the row.
WITH RECURSIVE
    launched AS (
        SELECT g.run, g.rank, g.op_id, g.event_id, g.launch_id, g.launch_ts, g.ts, g.dur, g.name
        FROM lib.scoped_gpu_ops(runs, ranks, steps, include_last_profiler_step) AS g
        WHERE g.launch_id IS NOT NULL AND (include_memory_events OR g.kind = 'kernel')
    ),
    operators AS (
        SELECT c.run, c.rank, c.event_id, c.parent_op_id, c.name, c.ts, c.dur
        FROM cpu_ops AS c
        WHERE lib.is_requested(runs, c.run) AND lib.is_requested(ranks, c.rank)
    ),
    -- Walk up from the innermost operator until the name matches.
    climbing AS (
        SELECT d.run, d.rank, d.op_id, d.op_id AS candidate_id, o.parent_op_id, starts_with(o.name, operator_prefix) AS fits
        FROM (SELECT DISTINCT l.run, l.rank, l.op_id FROM launched AS l) AS d
        JOIN operators AS o ON o.run = d.run AND o.rank = d.rank AND o.event_id = d.op_id
        UNION ALL
        SELECT u.run, u.rank, u.op_id, u.parent_op_id, o.parent_op_id, starts_with(o.name, operator_prefix)
        FROM climbing AS u
        JOIN operators AS o ON o.run = u.run AND o.rank = u.rank AND o.event_id = u.parent_op_id
        WHERE NOT u.fits
    ),
    calls AS (
        SELECT
            l.run,
            l.rank,
            u.candidate_id AS call_id,
            string_agg(l.name, ' -> ' ORDER BY l.launch_ts, l.launch_id, l.ts, l.event_id) AS kernel_sequence,
            count(*) AS kernel_count,
            arg_min(l.launch_ts, (l.launch_ts, l.launch_id, l.ts, l.event_id)) AS launch_ts,
            arg_min(l.ts, (l.launch_ts, l.launch_id, l.ts, l.event_id)) AS device_ts,
            sum(l.dur) AS device_sum
        FROM launched AS l
        JOIN climbing AS u ON u.run = l.run AND u.rank = l.rank AND u.op_id = l.op_id AND u.fits
        GROUP BY ALL
    )
SELECT
    k.run,
    k.rank,
    o.name AS operator_name,
    k.kernel_sequence,
    k.kernel_count,
    count(*) AS call_count,
    avg(k.launch_ts - o.ts) AS launch_delay_ns,
    avg(k.device_ts - k.launch_ts) AS queue_delay_ns,
    sum(o.dur)::BIGINT AS host_sum_ns,
    sum(k.device_sum)::BIGINT AS device_sum_ns
FROM calls AS k
JOIN operators AS o ON o.run = k.run AND o.rank = k.rank AND o.event_id = k.call_id
GROUP BY k.run, k.rank, o.name, k.kernel_sequence, k.kernel_count
ORDER BY k.run, k.rank, call_count DESC, device_sum_ns DESC, operator_name, k.kernel_sequence, k.kernel_count
