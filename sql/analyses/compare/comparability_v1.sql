-- Whether two runs can be compared: device, world size, ranks, software, types, and whether they did the same work.
--
-- The worst verdict of the facts is that of the pair; what a side does not say is unknown, which alone lowers nothing.
-- The last fact is the share of busy time whose operator and shapes are on both sides, as comparison pairs them.
--
-- Title: Whether two runs can be compared
-- Status: stable
-- Since: 0.1
-- Reference: none; what people check by hand before they believe a difference
-- Needs: two runs in the store, or one and different ranks or steps
CREATE OR REPLACE MACRO comparability_v1(
    -- Control and test, or one run for both; NULL means the first two runs of the store by name.
    runs VARCHAR[] := NULL,
    -- Ranks of the control; NULL means every rank.
    ranks INTEGER[] := NULL,
    -- Profiler steps of the control; NULL means every step, or the whole trace if it has no steps.
    steps BIGINT[] := NULL,
    -- Whether to include the last profiler step of a run with two or more.
    include_last_profiler_step BOOLEAN := false,
    -- Ranks of the test; NULL means the same as of the control.
    test_ranks INTEGER[] := NULL,
    -- Profiler steps of the test; NULL means the same as of the control.
    test_steps BIGINT[] := NULL,
    -- Operators and kernels with another name in the test, each as name_in_test=name_in_control; NULL: none.
    renamed VARCHAR[] := NULL
) AS TABLE
-- Columns:
--   control_run    VARCHAR     Run of the control.
--   test_run       VARCHAR     Run of the test.
--   position       BIGINT [1]  Place of the fact in the list.
--   fact           VARCHAR     What is told.
--   control_value  VARCHAR     What the control says; NULL: nothing.
--   test_value     VARCHAR     What the test says; likewise.
--   verdict        VARCHAR     same, unknown (a side does not say), limited (it explains a difference) or not comparable (times answer another question).
WITH
    pair AS (
        FROM lib.compared_runs(runs)
    ),
    compared AS MATERIALIZED (
        FROM lib.run_comparison(runs, ranks, steps, include_last_profiler_step, test_ranks, test_steps, renamed)
    ),
    control_facts AS (
        SELECT f.* FROM lib.run_facts(runs, ranks) AS f JOIN pair AS p ON p.control_run = f.run
    ),
    test_facts AS (
        SELECT f.* FROM lib.run_facts(runs, coalesce(test_ranks, ranks)) AS f JOIN pair AS p ON p.test_run = f.run
    )
SELECT p.control_run, p.test_run, f.*
FROM lib.compared_facts('control_facts', 'test_facts', 'compared') AS f
CROSS JOIN pair AS p
ORDER BY f.position
