-- Start of the rank's last profiler step; NULL without steps.
CREATE OR REPLACE TABLE last_step AS
SELECT max(p.ts) AS last_step_ts
FROM profiler_steps AS p
