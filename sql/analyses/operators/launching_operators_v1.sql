-- Device time by launching operator: each kernel counts once, for the innermost operator that encloses its launch.
--
-- The rows of a rank sum to the total duration of its device operations; concurrent kernels each count in full. Graph
-- replays outside operators are named [graph replay]. Other operations launched outside operators, or before the trace
-- began, are named [no operator]. Both have one row per category and phase.
--
-- Title: Operators that launch kernels
-- Shown: rank, device_ns, device_pct, call_count, name, kernel, phase, cumulative_pct
-- Status: stable
-- Since: 0.1
-- Reference: TraceLens ops_summary (leaf kernel launchers)
-- Needs: GPU activity; operators and runtime calls for names and phases
-- Ranks: independent
-- Report: first 3; table; at most 64 ranks
CREATE OR REPLACE MACRO launching_operators_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false,
    -- Whether each kernel of an operator has its own row.
    by_kernel BOOLEAN := false
) AS TABLE
-- Columns:
--   run             VARCHAR         Run name.
--   rank            INTEGER         Rank of the process.
--   name            VARCHAR         Operator name without overload, [graph replay] or [no operator].
--   kernel          VARCHAR         Kernel name, or kind and direction of a copy; NULL without by_kernel.
--   category        VARCHAR         Kind of work: gemm, convolution, attention, …; other if no rule matches.
--   phase           VARCHAR         Training phase: forward, backward or optimizer; NULL if the launch is not in the trace.
--   match_method    VARCHAR         How replayed kernels were matched with the capture that provides the operator, as in graph_matches; NULL if the operator does not come from a capture.
--   call_count      BIGINT [count]  Number of operator calls that launched the row's operations; NULL without an operator.
--   kernel_count    BIGINT [count]  Number of device operations.
--   device_ns       BIGINT [ns]     Total duration of these device operations.
--   mean_ns         DOUBLE [ns]     Mean duration.
--   device_pct      DOUBLE [%]      Share of the total duration of the rank's device operations.
--   cumulative_pct  DOUBLE [%]      Share of the total duration in this row and all rows before it.
WITH
    launched AS (
        SELECT
            g.run, g.rank, g.label AS name, CASE WHEN by_kernel THEN g.name END AS kernel, g.category, p.phase,
            g.op_id, CASE WHEN g.captured_op_id IS NOT NULL THEN (g.launch_id, g.captured_op_id) END AS captured_call, g.match_method, g.dur
        FROM lib.categorized_gpu_ops(runs, ranks, steps, include_last_profiler_step) AS g
        LEFT JOIN lib.launch_phases(runs, ranks) AS p ON p.run = g.run AND p.rank = g.rank AND p.launch_id = g.launch_id
    ),
    summed AS (
        SELECT
            l.run, l.rank, l.name, l.kernel, l.category, l.phase, l.match_method,
            nullif(count(DISTINCT l.op_id) + count(DISTINCT l.captured_call), 0) AS call_count,
            count(*) AS kernel_count,
            sum(l.dur)::BIGINT AS device_ns
        FROM launched AS l
        GROUP BY l.run, l.rank, l.name, l.kernel, l.category, l.phase, l.match_method
    )
SELECT
    s.run,
    s.rank,
    s.name,
    s.kernel,
    s.category,
    s.phase,
    s.match_method,
    s.call_count,
    s.kernel_count,
    s.device_ns,
    s.device_ns / s.kernel_count AS mean_ns,
    100 * (s.device_ns / nullif(sum(s.device_ns) OVER of_rank, 0)) AS device_pct,
    100 * (sum(s.device_ns) OVER (of_rank ORDER BY s.device_ns DESC, s.name, s.category, s.phase, s.kernel, s.match_method ROWS UNBOUNDED PRECEDING)
        / nullif(sum(s.device_ns) OVER of_rank, 0)) AS cumulative_pct
FROM summed AS s
WINDOW of_rank AS (PARTITION BY s.run, s.rank)
ORDER BY s.run, s.rank, s.device_ns DESC, s.name, s.category, s.phase, s.kernel, s.match_method
