-- How often and how long each operation runs, by name: operators, annotations, runtime and Python
-- calls on the host; kernels, copies, memsets and syncs on the device.
--
-- All wanted ranks and steps of a run are added up. Durations on the host contain those of what was
-- called inside, so that they do not add up to the time of a thread.
--
-- Title: Longest operations
-- Status: stable
-- Since: 0.1
-- Reference: HTA LabeledTrace.get_ops_summary
-- Needs: nothing more than a trace
CREATE OR REPLACE MACRO ops_by_name_v1(
    -- Runs to include; NULL means every run.
    runs VARCHAR[] := NULL,
    -- Ranks to include; NULL means every rank.
    ranks INTEGER[] := NULL,
    -- Profiler steps to include; NULL means every step and all activity outside steps.
    steps BIGINT[] := NULL,
    -- Whether to include the last profiler step of a run with two or more.
    include_last_profiler_step BOOLEAN := false,
    -- Only what runs there: host or device; NULL means both.
    only_side VARCHAR := NULL,
    -- Whether names lose template arguments, parameters and return type.
    by_short_name BOOLEAN := false,
    -- Whether operators with other input shapes are another operation.
    by_shapes BOOLEAN := false,
    -- Whether equal names of another side or category are another operation.
    by_category BOOLEAN := true,
    -- Whether profiler steps of other numbers are another operation; else all are ProfilerStep.
    by_step_number BOOLEAN := true
) AS TABLE
-- Columns:
--   run       VARCHAR         Run name.
--   side      VARCHAR         host or device; NULL where categories are not told apart.
--   category  VARCHAR         cpu_op, user_annotation, python_function, a category of runtime calls; kernel,
--                             gpu_memcpy, gpu_memset or cuda_sync; NULL where categories are not told apart.
--   name      VARCHAR         Name, or short name.
--   shapes    VARCHAR         Input shapes as JSON; NULL where shapes are not told apart.
--   op_count  BIGINT [count]  Operations.
--   sum_ns    BIGINT [ns]     Total duration.
--   min_ns    BIGINT [ns]     Shortest duration.
--   max_ns    BIGINT [ns]     Longest duration.
--   mean_ns   DOUBLE [ns]     Mean duration.
WITH
    operations AS (
        SELECT o.run AS lane, o.side, o.category, o.name, o.shapes, o.dur
        FROM lib.scoped_ops(runs, ranks, steps, include_last_profiler_step) AS o
        WHERE only_side IS NULL OR o.side = only_side
    )
SELECT
    s.lane AS run,
    s.side,
    s.category,
    s.name,
    s.shapes,
    s.op_count,
    s.sum_ns,
    s.min_ns,
    s.max_ns,
    s.sum_ns / s.op_count AS mean_ns
FROM lib.summed_ops('operations', by_short_name, by_shapes, by_category, by_step_number) AS s
ORDER BY run, s.sum_ns DESC, s.side, s.category, s.name, s.shapes
