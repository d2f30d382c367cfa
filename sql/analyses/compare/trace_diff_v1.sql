-- Differences between two runs, steps or ranks by operation name, largest change in duration first.
--
-- The first run is the control, the second the test. Different ranks or steps of the same run can also be compared.
-- All requested ranks and steps of the control are summed, and likewise for the test, so choose the same number of
-- ranks and steps for both. Step numbers of two captures never correspond. ProfilerStep#3 of one run and
-- ProfilerStep#8 of the other therefore share the row ProfilerStep, unless by_step_number separates them, as HTA does.
--
-- Title: Operations that differ
-- Shown: name, count_change, diff_count, diff_sum_ns, diff_pct, control_sum_ns, test_sum_ns, category
-- Status: stable
-- Since: 0.1
-- Reference: HTA TraceDiff.compare_traces and TraceDiff.ops_diff
-- Needs: two runs in the store, or different ranks or steps of one run
-- Report: first 3
CREATE OR REPLACE MACRO trace_diff_v1(
    -- Control and test, in this order, or one run for both; NULL means the first two runs of the store by name.
    runs VARCHAR[] := NULL,
    -- Ranks of the control; NULL means every rank.
    ranks INTEGER[] := NULL,
    -- Profiler steps of the control; NULL means every step and all activity outside steps.
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false,
    -- Ranks of the test; NULL means the ranks of the control.
    test_ranks INTEGER[] := NULL,
    -- Profiler steps of the test; NULL means the steps of the control.
    test_steps BIGINT[] := NULL,
    -- Side to include: host or device; NULL means both.
    only_side VARCHAR := NULL,
    -- Whether to strip template arguments, parameters and return types from names.
    by_short_name BOOLEAN := false,
    -- Whether operators with different input shapes have separate rows.
    by_shapes BOOLEAN := false,
    -- Whether equal names with different sides or categories have separate rows.
    by_category BOOLEAN := true,
    -- Whether profiler steps with different numbers have separate rows; otherwise all are named ProfilerStep.
    by_step_number BOOLEAN := false
) AS TABLE
-- Columns:
--   control_run     VARCHAR         Run of the control.
--   test_run        VARCHAR         Run of the test.
--   side            VARCHAR         host or device; NULL without by_category.
--   category        VARCHAR         Category as in ops_by_name; NULL without by_category.
--   name            VARCHAR         Name without object addresses, or short name with by_short_name.
--   shapes          VARCHAR         Input shapes as JSON; NULL without by_shapes.
--   count_change    VARCHAR         Change in count: added, deleted, increased, decreased or unchanged.
--   control_count   BIGINT [count]  Number of operations in the control; 0 if none.
--   test_count      BIGINT [count]  Number of operations in the test; 0 if none.
--   diff_count      BIGINT [count]  Test minus control.
--   control_sum_ns  BIGINT [ns]     Total duration in the control.
--   test_sum_ns     BIGINT [ns]     Total duration in the test.
--   diff_sum_ns     BIGINT [ns]     Test minus control.
--   diff_pct        DOUBLE [%]      diff_sum_ns as a share of control_sum_ns; NULL if that is 0.
WITH
    pair AS (
        FROM lib.compared_runs(runs)
    ),
    operations AS (
        SELECT o.*
        FROM lib.scoped_ops(runs, NULL, NULL, include_last_profiler_step) AS o
        WHERE only_side IS NULL OR o.side = only_side
    ),
    of_both AS (
        SELECT 'control' AS lane, o.side, o.category, o.name, o.shapes, o.dur
        FROM operations AS o
        JOIN pair AS p ON o.run = p.control_run
        WHERE
            lib.is_requested(ranks, o.rank)
            AND lib.is_requested(steps, o.step)
        UNION ALL
        SELECT 'test', o.side, o.category, o.name, o.shapes, o.dur
        FROM operations AS o
        JOIN pair AS p ON o.run = p.test_run
        WHERE
            lib.is_requested(coalesce(test_ranks, ranks), o.rank)
            AND lib.is_requested(coalesce(test_steps, steps), o.step)
    ),
    summed AS (
        SELECT s.* FROM lib.summed_ops('of_both', by_short_name, by_shapes, by_category, by_step_number) AS s
    ),
    control AS (
        SELECT s.* FROM summed AS s WHERE s.lane = 'control'
    ),
    test AS (
        SELECT s.* FROM summed AS s WHERE s.lane = 'test'
    )
SELECT p.control_run, p.test_run, d.*
FROM lib.ops_difference('control', 'test') AS d
CROSS JOIN pair AS p
WHERE p.test_run IS NOT NULL
ORDER BY abs(d.diff_sum_ns) DESC, d.side, d.category, d.name, d.shapes
