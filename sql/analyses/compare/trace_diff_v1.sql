-- What differs between two runs, two steps or two ranks, by the names of operations.
--
-- The first of the runs is the control, the second the test; a run may stand against itself, other
-- ranks or steps of it. All wanted ranks and steps of a side are added up: choose equally many of
-- both. What changed most in duration comes first. Two captures never have the same steps, so that
-- ProfilerStep#3 of one and ProfilerStep#8 of the other are one row, ProfilerStep, unless
-- by_step_number tells them apart, as HTA does.
--
-- Title: Operations that differ
-- Status: stable
-- Since: 0.1
-- Reference: HTA TraceDiff.compare_traces and TraceDiff.ops_diff
-- Needs: two runs in the store, or one and different ranks or steps
CREATE OR REPLACE MACRO trace_diff_v1(
    -- Control and test, or one run for both; NULL means the first two runs of the store by name.
    runs VARCHAR[] := NULL,
    -- Ranks of the control; NULL means every rank.
    ranks INTEGER[] := NULL,
    -- Profiler steps of the control; NULL means every step and what lies outside of steps.
    steps BIGINT[] := NULL,
    -- Whether to include the last profiler step of a run with two or more.
    include_last_profiler_step BOOLEAN := false,
    -- Ranks of the test; NULL means the same as of the control.
    test_ranks INTEGER[] := NULL,
    -- Profiler steps of the test; NULL means the same as of the control.
    test_steps BIGINT[] := NULL,
    -- Only what runs there: host or device; NULL means both.
    only_side VARCHAR := NULL,
    -- Whether names lose template arguments, parameters and return type.
    by_short_name BOOLEAN := false,
    -- Whether operators with other input shapes are another operation.
    by_shapes BOOLEAN := false,
    -- Whether equal names of another side or category are another operation.
    by_category BOOLEAN := true,
    -- Whether profiler steps of other numbers are another operation; else all are ProfilerStep.
    by_step_number BOOLEAN := false
) AS TABLE
-- Columns:
--   control_run     VARCHAR         Run of the control.
--   test_run        VARCHAR         Run of the test.
--   side            VARCHAR         host or device; NULL where categories are not told apart.
--   category        VARCHAR         Category as of ops_by_name; likewise.
--   name            VARCHAR         Name, or short name.
--   shapes          VARCHAR         Input shapes as JSON; NULL where shapes are not told apart.
--   change          VARCHAR         By counts, not by duration: added, deleted, increased, decreased or unchanged.
--   control_count   BIGINT [count]  Operations of the control; 0 where it has none.
--   test_count      BIGINT [count]  Operations of the test; likewise.
--   diff_count      BIGINT [count]  Test minus control.
--   control_sum_ns  BIGINT [ns]     Their duration in the control.
--   test_sum_ns     BIGINT [ns]     Their duration in the test.
--   diff_sum_ns     BIGINT [ns]     Test minus control.
--   diff_pct        DOUBLE [%]      Test less control in duration, as a share of the control; NULL where that is 0.
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
