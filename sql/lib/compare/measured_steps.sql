-- Mean step time of each run, and its uncertainty.
CREATE OR REPLACE MACRO lib.measured_steps(
    runs
) AS TABLE
-- Columns:
--   run         VARCHAR         Run name.
--   step_count  BIGINT [count]  Number of steps, without the last of two or more steps.
--   step_ns     DOUBLE [ns]     Mean host step time over ranks and steps.
--   noise_ns    DOUBLE [ns]     Half the width of the 95 % confidence interval of step_ns over steps, assuming a normal distribution; NULL for one step.
SELECT s.run, count(*) AS step_count, avg(s.step_ns) AS step_ns, 1.96 * stddev_samp(s.step_ns) / sqrt(count(*)) AS noise_ns
FROM (
    SELECT p.run, p.step, avg(p.step_ns) AS step_ns
    FROM lib.scoped_steps(runs, NULL, NULL, false) AS p
    GROUP BY p.run, p.step
) AS s
GROUP BY s.run
