-- Device time by kind of work (gemm, attention, norm, …) and phase (forward, backward, optimizer).
--
-- The category comes from the operator that launched a kernel. If the operator does not determine the category, as in
-- compiled regions and CUDA graphs, the category comes from the kernel name. The rules are in the operation_categories
-- table. The rows of a rank sum to the total duration of its device operations.
--
-- Title: Device time by kind of work
-- Shown: rank, category, phase, device_ns, device_pct, kernel_count, operator_count
-- Status: stable
-- Since: 0.1
-- Reference: TraceLens ops_by_category
-- Needs: GPU activity; operators and runtime calls for phases
-- Chart:
--   mark = "stack"
--   title = "Device time by kind of work"
--   notes = [
--     "Device time, mean of the ranks. The category follows from the operator that launched the kernel, or else from the kernel's name.",
--   ]
--   bar = ["category"]
--   mean = "rank"
--   shares = false
--   legend = "Phase"
--   whole = "the category"
--   value = "device_ns"
--   part = "phase"
--   parts.forward = "forward"
--   parts.backward = "backward"
--   parts.optimizer = "optimizer"
CREATE OR REPLACE MACRO operator_categories_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false
) AS TABLE
-- Columns:
--   run                VARCHAR         Run name.
--   rank               INTEGER         Rank of the process.
--   category           VARCHAR         Kind of work; other if no rule matches.
--   phase              VARCHAR         Training phase: forward, backward or optimizer; NULL if the launch is not in the trace.
--   operator_count     BIGINT [count]  Number of distinct launching operators.
--   kernel_count       BIGINT [count]  Number of device operations.
--   device_ns          BIGINT [ns]     Total duration of these device operations.
--   device_pct         DOUBLE [%]      Share of the total duration of the rank's device operations.
--   by_kernel_name_ns  BIGINT [ns]     Part of device_ns whose category comes from the kernel name alone.
WITH
    launched AS (
        SELECT g.run, g.rank, g.category, g.category_source, p.phase, g.operator_name, g.dur
        FROM lib.categorized_gpu_ops(runs, ranks, steps, include_last_profiler_step) AS g
        LEFT JOIN lib.launch_phases(runs, ranks) AS p ON p.run = g.run AND p.rank = g.rank AND p.launch_id = g.launch_id
    ),
    summed AS (
        SELECT
            l.run, l.rank, l.category, l.phase,
            count(DISTINCT l.operator_name) AS operator_count,
            count(*) AS kernel_count,
            sum(l.dur)::BIGINT AS device_ns,
            sum(CASE WHEN l.category_source = 'kernel' THEN l.dur ELSE 0 END)::BIGINT AS by_kernel_name_ns
        FROM launched AS l
        GROUP BY l.run, l.rank, l.category, l.phase
    )
SELECT
    s.run,
    s.rank,
    s.category,
    s.phase,
    s.operator_count,
    s.kernel_count,
    s.device_ns,
    100 * (s.device_ns / nullif(sum(s.device_ns) OVER (PARTITION BY s.run, s.rank), 0)) AS device_pct,
    s.by_kernel_name_ns
FROM summed AS s
ORDER BY s.run, s.rank, s.device_ns DESC, s.category, s.phase
