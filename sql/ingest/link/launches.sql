-- The host call behind each correlation id: one row per id, whatever the call is named.
--
-- A launch may show twice (cudaLaunchKernel around cuLaunchKernel, HIP layers): the outermost call
-- counts, which starts first. One call may launch many kernels (graphs).
CREATE OR REPLACE TEMP TABLE launches AS
WITH
    wanted AS (
        SELECT DISTINCT g.correlation
        FROM staged_gpu_ops AS g
        WHERE g.correlation IS NOT NULL
    )
SELECT r.correlation, arg_min({'id': r.event_id, 'ts': r.ts, 'dur': r.dur}, (r.ts, -r.dur, r.event_id)) AS call
FROM staged_runtime_calls AS r
JOIN wanted AS w ON w.correlation = r.correlation
GROUP BY r.correlation
