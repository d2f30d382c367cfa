-- Predictions from the replay of one run for each scenario, next to the step time of a later run.
--
-- The interval of a prediction comes from the variation over steps, but extends by at least 1 % of the recorded step
-- time or 10 % of the saving to either side, because replays of simulated jobs are that accurate in nine of ten
-- scenarios.
CREATE OR REPLACE MACRO lib.compared_predictions(
    -- Name of a relation with the columns of lib.replayed_scenarios, restricted to one run.
    scenarios,
    -- Name of a relation with the columns of lib.measured_steps, restricted to one run.
    measured
) AS TABLE
-- Columns:
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
    _predicted AS (
        SELECT
            s.position, s.scenario, s.step_ns, s.replayed_step_ns, s.bound,
            greatest(s.step_ns / 100, s.step_ns * s.saved_pct / 1_000) AS margin_ns,
            s.step_ns * (1 - s.saved_low_pct / 100) AS high_ns, s.step_ns * (1 - s.saved_high_pct / 100) AS low_ns
        FROM query_table(scenarios) AS s
        WHERE s.replayed_step_ns IS NOT NULL
    ),
    _intervals AS (
        SELECT
            p.*, m.step_ns AS measured_ns, m.noise_ns,
            least(coalesce(p.low_ns, p.replayed_step_ns), p.replayed_step_ns - p.margin_ns) AS least_ns,
            greatest(coalesce(p.high_ns, p.replayed_step_ns), p.replayed_step_ns + p.margin_ns) AS most_ns
        FROM _predicted AS p
        CROSS JOIN query_table(measured) AS m
    )
SELECT
    i.position, i.scenario, i.step_ns AS control_step_ns, i.replayed_step_ns AS predicted_step_ns,
    round(i.least_ns)::BIGINT AS predicted_low_ns, round(i.most_ns)::BIGINT AS predicted_high_ns,
    round(i.measured_ns)::BIGINT AS measured_step_ns, round(i.noise_ns)::BIGINT AS measured_noise_ns,
    round(i.measured_ns)::BIGINT - i.replayed_step_ns AS diff_ns,
    100::DOUBLE * (i.measured_ns - i.replayed_step_ns) / nullif(i.step_ns, 0) AS diff_pct,
    CASE
        WHEN i.measured_ns + coalesce(i.noise_ns, 0) < i.least_ns AND i.bound IS DISTINCT FROM 'lower' THEN 'faster than predicted'
        WHEN i.measured_ns - coalesce(i.noise_ns, 0) > i.most_ns AND i.bound IS DISTINCT FROM 'upper' THEN 'slower than predicted'
        ELSE 'as predicted'
    END AS verdict,
    i.bound
FROM _intervals AS i
