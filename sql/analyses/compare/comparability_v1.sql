-- Whether two runs can be compared: device, world size, ranks, software, data types, and whether they did the same
-- work.
--
-- The verdict on the pair is the worst verdict on any property. A property that one run does not record is unknown,
-- which does not lower the verdict on the pair. The last property is the share of busy time with the same operator and
-- shapes in both runs, as paired by the comparison analysis.
--
-- Title: Whether two runs can be compared
-- Shown: fact, verdict, control_value, test_value
-- Status: stable
-- Since: 0.1
-- Reference: none; the checks that people make by hand before they trust a difference
-- Needs: two runs in the store, or different ranks or steps of one run
CREATE OR REPLACE MACRO comparability_v1(
    -- Control and test, in this order, or one run for both; NULL means the first two runs of the store by name.
    runs VARCHAR[] := NULL,
    -- Ranks of the control; NULL means every rank.
    ranks INTEGER[] := NULL,
    -- Profiler steps of the control; NULL means every step, or the whole trace if it has no steps.
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false,
    -- Ranks of the test; NULL means the ranks of the control.
    test_ranks INTEGER[] := NULL,
    -- Profiler steps of the test; NULL means the steps of the control.
    test_steps BIGINT[] := NULL,
    -- Operators and kernels with a different name in the test, each as name_in_test=name_in_control; NULL: none.
    renamed VARCHAR[] := NULL
) AS TABLE
-- Columns:
--   control_run    VARCHAR     Run of the control.
--   test_run       VARCHAR     Run of the test.
--   position       BIGINT [1]  Position of the property in the list, from 1.
--   fact           VARCHAR     Name of the compared property.
--   control_value  VARCHAR     Value of the control; NULL if not recorded.
--   test_value     VARCHAR     Value of the test; NULL if not recorded.
--   verdict        VARCHAR     same, unknown (not recorded for both), limited (may explain a difference) or not comparable (the times cannot be compared).
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
