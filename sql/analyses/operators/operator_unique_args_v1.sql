-- Operators by argument set (shapes, types, strides, scalars), with host time, device time and kernels of each set.
--
-- Device time belongs to the innermost operator that encloses the launch. An operator that only calls other operators
-- has no device time, and device_self_ns summed over all rows of a rank is the total duration of the operations
-- launched by operators. Statistics of device time per call cover only calls that launched operations themselves.
-- Arguments that were not recorded are NULL, and calls without recorded arguments share a row.
--
-- Title: Operators by shape
-- Shown: rank, device_self_ns, call_count, name, input_shapes, mean_call_ns, kernels, max_call_ns, host_total_ns
-- Status: stable
-- Since: 0.1
-- Reference: TraceLens ops_unique_args
-- Needs: host operators; record_shapes for arguments
-- Ranks: independent
-- Report: first 2; table; at most 64 ranks; without input_shapes: Shapes are unknown. Record them with record_shapes=True.
CREATE OR REPLACE MACRO operator_unique_args_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false,
    -- Prefix of the operator names to include; empty means every operator.
    operator_prefix VARCHAR := ''
) AS TABLE
-- Columns:
--   run               VARCHAR         Run name.
--   rank              INTEGER         Rank of the process.
--   name              VARCHAR         Operator name, with its overload if recorded.
--   input_shapes      VARCHAR         Input shapes as JSON.
--   input_types       VARCHAR         Input types as JSON.
--   input_strides     VARCHAR         Input strides as JSON.
--   concrete_inputs   VARCHAR         Scalar inputs as JSON.
--   call_count        BIGINT [count]  Number of calls.
--   host_total_ns     BIGINT [ns]     Host time including callees; a call inside a call of the same argument set counts in both.
--   launching_count   BIGINT [count]  Number of calls that launched operations themselves.
--   kernel_count      BIGINT [count]  Number of device operations launched by the calls themselves.
--   device_self_ns    BIGINT [ns]     Total duration of these device operations; NULL for a rank without device activity, as kernel_count.
--   mean_call_ns      DOUBLE [ns]     Mean device time of a launching call; NULL if there is none.
--   median_call_ns    DOUBLE [ns]     Median device time of a launching call; NULL if there is none.
--   std_call_ns       DOUBLE [ns]     Sample standard deviation of the device time of launching calls; NULL for a single call.
--   min_call_ns       BIGINT [ns]     Shortest device time of a launching call.
--   max_call_ns       BIGINT [ns]     Longest device time of a launching call.
--   kernels           VARCHAR         Device operations in kernel_count (kernels, copies and memsets) as JSON with name, count and sum_ns, longest total first; NULL if there are none.
--   example_event_id  BIGINT          event_id of the call with the longest device time or, if no call has device time, the longest host time; the first one if several are equal.
WITH
    calls AS (
        SELECT
            c.run, c.rank, c.event_id, c.name, c.input_dims AS input_shapes, c.input_types, c.input_strides, c.concrete_inputs, c.ts, c.dur,
            hash(c.name, c.input_dims, c.input_types, c.input_strides, c.concrete_inputs) AS arguments
        FROM cpu_ops AS c
        WHERE
            starts_with(c.name, operator_prefix)
            AND lib.is_requested(runs, c.run)
            AND lib.is_requested(ranks, c.rank)
            AND lib.is_requested(steps, c.step)
            AND (include_last_profiler_step OR NOT c.in_last_step)
    ),
    launched AS MATERIALIZED (
        SELECT g.run, g.rank, g.op_id, g.name, count(*) AS kernel_count, sum(g.dur)::BIGINT AS device_ns
        FROM gpu_ops AS g
        WHERE g.op_id IS NOT NULL AND g.class <> 'sync' AND NOT g.is_suspect AND lib.is_requested(runs, g.run) AND lib.is_requested(ranks, g.rank)
        GROUP BY g.run, g.rank, g.op_id, g.name
    ),
    costs AS (
        SELECT l.run, l.rank, l.op_id, sum(l.kernel_count)::BIGINT AS kernel_count, sum(l.device_ns)::BIGINT AS device_ns
        FROM launched AS l
        GROUP BY l.run, l.rank, l.op_id
    ),
    costed AS (
        SELECT c.*, o.kernel_count, o.device_ns
        FROM calls AS c
        LEFT JOIN costs AS o ON o.run = c.run AND o.rank = c.rank AND o.op_id = c.event_id
    ),
    summed AS (
        SELECT
            c.run, c.rank, c.arguments, c.name, c.input_shapes, c.input_types, c.input_strides, c.concrete_inputs,
            count(*) AS call_count,
            sum(c.dur)::BIGINT AS host_total_ns,
            count(c.device_ns) AS launching_count,
            coalesce(sum(c.kernel_count), 0)::BIGINT AS kernel_count,
            coalesce(sum(c.device_ns), 0)::BIGINT AS device_self_ns,
            sum(c.device_ns) / count(c.device_ns) AS mean_call_ns,
            quantile_cont(c.device_ns, 0.5) AS median_call_ns,
            lib.exact_std(c.device_ns) AS std_call_ns,
            min(c.device_ns) AS min_call_ns,
            max(c.device_ns) AS max_call_ns,
            arg_min(c.event_id, (-coalesce(c.device_ns, 0), -c.dur, c.ts, c.event_id)) AS example_event_id
        FROM costed AS c
        GROUP BY c.run, c.rank, c.arguments, c.name, c.input_shapes, c.input_types, c.input_strides, c.concrete_inputs
    ),
    kernel_sums AS (
        SELECT
            c.run, c.rank, c.arguments, l.name, sum(l.kernel_count)::BIGINT AS kernel_count, sum(l.device_ns)::BIGINT AS device_ns
        FROM launched AS l
        JOIN calls AS c ON c.run = l.run AND c.rank = l.rank AND c.event_id = l.op_id
        GROUP BY c.run, c.rank, c.arguments, l.name
    ),
    kernel_lists AS (
        SELECT
            k.run, k.rank, k.arguments,
            to_json(list({'name': k.name, 'count': k.kernel_count, 'sum_ns': k.device_ns} ORDER BY k.device_ns DESC, k.name))::VARCHAR AS kernels
        FROM kernel_sums AS k
        GROUP BY k.run, k.rank, k.arguments
    )
SELECT
    s.run,
    s.rank,
    s.name,
    s.input_shapes,
    s.input_types,
    s.input_strides,
    s.concrete_inputs,
    s.call_count,
    s.host_total_ns,
    s.launching_count,
    CASE WHEN d.run IS NOT NULL THEN s.kernel_count END AS kernel_count,
    CASE WHEN d.run IS NOT NULL THEN s.device_self_ns END AS device_self_ns,
    s.mean_call_ns,
    s.median_call_ns,
    s.std_call_ns,
    s.min_call_ns,
    s.max_call_ns,
    k.kernels,
    s.example_event_id
FROM summed AS s
LEFT JOIN lib.device_ranks(runs, ranks) AS d ON d.run = s.run AND d.rank = s.rank
LEFT JOIN kernel_lists AS k ON k.run = s.run AND k.rank = s.rank AND k.arguments = s.arguments
ORDER BY
    s.run, s.rank, s.device_self_ns DESC, s.host_total_ns DESC, s.name, s.input_shapes, s.input_types, s.input_strides,
    s.concrete_inputs
