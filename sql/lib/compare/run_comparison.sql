-- Step-by-step comparison of two runs of a store: lib.compared_contents for the runs of lib.compared_runs.
CREATE OR REPLACE MACRO lib.run_comparison(
    -- Control and test, in this order, or one run for both; NULL means the first two runs of the store by name.
    runs,
    -- Ranks of the control; NULL means every rank.
    ranks,
    -- Profiler steps of the control; NULL means every step, or the whole trace if it has no steps.
    steps,
    include_last_profiler_step,
    -- Ranks of the test; NULL means the ranks of the control.
    test_ranks,
    -- Profiler steps of the test; NULL means the steps of the control.
    test_steps,
    -- Operators and kernels with a different name in the test, each as name_in_test=name_in_control; NULL: none.
    renamed
) AS TABLE
-- Columns: those of compared_contents.
WITH
    _pair AS (
        FROM lib.compared_runs(runs)
    ),
    _contents AS MATERIALIZED (
        FROM lib.step_contents(runs, NULL, NULL, include_last_profiler_step)
    ),
    _control AS MATERIALIZED (
        SELECT c.*
        FROM _contents AS c
        JOIN _pair AS p ON p.control_run = c.run
        WHERE lib.is_requested(ranks, c.rank) AND lib.is_requested(steps, c.step)
    ),
    _test AS MATERIALIZED (
        SELECT c.*
        FROM _contents AS c
        JOIN _pair AS p ON p.test_run = c.run
        WHERE lib.is_requested(coalesce(test_ranks, ranks), c.rank) AND lib.is_requested(coalesce(test_steps, steps), c.step)
    )
FROM lib.compared_contents('_control', '_test', renamed)
