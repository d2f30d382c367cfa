-- The profiler step of what has no place in a host call tree: device annotations, and device activity
-- without a launch in the trace. Everything else has the step of its host event.
CREATE OR REPLACE TABLE device_steps AS
WITH
    alone AS (
        SELECT g.event_id, g.ts
        FROM staged_gpu_ops AS g
        LEFT JOIN launches AS l ON l.correlation = g.correlation AND l.part = part_of(g.event_id)
        WHERE l.correlation IS NULL
        UNION ALL
        SELECT a.event_id, a.ts
        FROM staged_annotations AS a
        WHERE a.cat <> 'user_annotation'
    ),
    windows AS (
        FROM step_windows AS w
        WHERE w.ts < w.end_ts
    )
SELECT a.event_id, s.step
FROM alone AS a
ASOF JOIN windows AS s ON s.part = part_of(a.event_id) AND a.ts >= s.ts
WHERE a.ts < s.end_ts
