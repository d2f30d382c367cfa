-- Runs to compare: the first two requested runs, a single requested run for both sides, or the first two runs of the
-- store by name.
CREATE OR REPLACE MACRO lib.compared_runs(
    -- Control and test, in this order, or one run for both; NULL means the first two runs of the store by name.
    runs
) AS TABLE
-- Columns:
--   control_run  VARCHAR  Run of the control; NULL in an empty store.
--   test_run     VARCHAR  Run of the test; NULL if there is only one run.
WITH
    _known AS (
        SELECT list(r.run ORDER BY r.run) AS all_runs FROM runs AS r
    )
SELECT coalesce(runs[1], k.all_runs[1]) AS control_run, coalesce(runs[2], runs[1], k.all_runs[2]) AS test_run
FROM _known AS k
