-- Start of each rank's last profiler step.
CREATE OR REPLACE TABLE last_step AS
SELECT p.part, max(p.ts) AS last_step_ts
FROM profiler_steps AS p
GROUP BY p.part
