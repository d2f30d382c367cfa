-- Count and duration of each operation by name: operators, annotations, runtime and Python calls on the host;
-- kernels, copies, memsets and synchronizations on the device.
--
-- All requested ranks and steps of a run are combined. Durations on the host include nested calls, so they do not sum
-- to the time of a thread.
--
-- Title: Longest operations
-- Shown: sum_ns, op_count, mean_ns, name, shapes, category, side, max_ns
-- Status: stable
-- Since: 0.1
-- Reference: HTA LabeledTrace.get_ops_summary
-- Needs: only a trace
-- Chart:
--   mark = "bars"
--   title = "The longest operations"
--   notes = ["Sum over all ranks. On the host, the time of a call includes its callees."]
--   empty = "No operation took any time."
--   name = "name"
--   value = "sum_ns"
--   measure = "Total duration"
--   part = "side"
--   separate = true
--   parts.host = ["host", "operator"]
--   parts.device = ["device", "neutral"]
--   parts.unknown = ["host and device", "neutral"]
--   tooltip.category = "Category"
--   tooltip.op_count = "Operations"
CREATE OR REPLACE MACRO ops_by_name_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false,
    -- Side to include: host or device; NULL means both.
    only_side VARCHAR := NULL,
    -- Whether to strip template arguments, parameters and return types from names.
    by_short_name BOOLEAN := false,
    -- Whether operators with different input shapes have separate rows.
    by_shapes BOOLEAN := false,
    -- Whether equal names with different sides or categories have separate rows.
    by_category BOOLEAN := true,
    -- Whether profiler steps with different numbers have separate rows; otherwise all are named ProfilerStep.
    by_step_number BOOLEAN := true
) AS TABLE
-- Columns:
--   run       VARCHAR         Run name.
--   side      VARCHAR         host or device; NULL without by_category.
--   category  VARCHAR         cpu_op, user_annotation, python_function, a category of runtime calls, kernel, gpu_memcpy, gpu_memset or cuda_sync; NULL without by_category.
--   name      VARCHAR         Name without object addresses, or short name with by_short_name.
--   shapes    VARCHAR         Input shapes as JSON; NULL without by_shapes.
--   op_count  BIGINT [count]  Number of operations.
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
