-- The profiler step of what has no place in a host call tree: device annotations, and device activity
-- without a launch in the trace. Everything else has the step of its host event.
CREATE OR REPLACE TABLE device_steps AS
WITH
    alone AS (
        SELECT g.event_id, g.ts
        FROM staged_gpu_ops AS g
        LEFT JOIN launches AS l ON l.correlation = g.correlation
        WHERE l.correlation IS NULL
        UNION ALL
        SELECT a.event_id, a.ts
        FROM staged_annotations AS a
        WHERE a.cat <> 'user_annotation'
    )
SELECT a.event_id, s.step
FROM alone AS a
JOIN step_windows AS s ON a.ts >= s.ts AND a.ts < s.end_ts
