-- Predictions of the what_if analysis for one run, compared with the steps of a later run.
--
-- If the later run differs only by the change that the scenario describes, its step time should lie within the
-- interval of the prediction. The interval reflects the variation between steps, but extends at least 1 % of the
-- recorded step time and at least 10 % of the saving in both directions.
--
-- Title: Predictions against a later run
-- Shown: scenario, control_step_ns, predicted_step_ns, measured_step_ns, diff_ns, diff_pct, verdict, bound
-- Status: stable
-- Since: 0.1
-- Scope: runs; all ranks of both runs are used
-- Reference: none
-- Needs: two runs in the store with profiler steps; the first one with GPU activity of two ranks that communicate
CREATE OR REPLACE MACRO predictions_v1(
    -- Control and test, in this order; NULL means the first two runs of the store by name.
    runs VARCHAR[] := NULL
) AS TABLE
-- Columns:
--   control_run         VARCHAR      Run whose replay gives the predictions.
--   test_run            VARCHAR      Run that was measured later.
--   position            INTEGER [1]  Position of the scenario, from 1.
--   scenario            VARCHAR      Name of the scenario, as in what_if.
--   control_step_ns     BIGINT [ns]  Mean step time of the control, as recorded.
--   predicted_step_ns   BIGINT [ns]  Step time of the control in this scenario.
--   predicted_low_ns    BIGINT [ns]  Lower end of the prediction's interval.
--   predicted_high_ns   BIGINT [ns]  Upper end of the prediction's interval.
--   measured_step_ns    BIGINT [ns]  Mean step time of the test.
--   measured_noise_ns   BIGINT [ns]  Half the width of the 95 % confidence interval of measured_step_ns; NULL for a single step.
--   diff_ns             BIGINT [ns]  Measured minus predicted step time.
--   diff_pct            DOUBLE [%]   diff_ns as a share of control_step_ns.
--   verdict             VARCHAR      as predicted (the measured and predicted intervals overlap), faster than predicted (the measured interval is lower) or slower than predicted (the measured interval is higher).
--   bound               VARCHAR      lower: the saving may be larger, so a faster test also counts as predicted; upper: the saving may be smaller, so a slower test also counts as predicted; estimate: neither.
WITH
    pair AS (
        FROM lib.compared_runs(runs)
    ),
    scenarios AS (
        SELECT s.* FROM lib.replayed_scenarios(runs) AS s JOIN pair AS p ON p.control_run = s.run
    ),
    measured AS (
        SELECT m.* FROM lib.measured_steps(runs) AS m JOIN pair AS p ON p.test_run = m.run
    )
SELECT p.control_run, p.test_run, c.*
FROM lib.compared_predictions('scenarios', 'measured') AS c
CROSS JOIN pair AS p
ORDER BY c.position
