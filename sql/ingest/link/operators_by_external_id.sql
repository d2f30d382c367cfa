-- The host operator behind each external id, for device activity without a launch in the trace.
CREATE OR REPLACE TABLE operators_by_external_id AS
WITH
    wanted AS (
        SELECT DISTINCT part_of(g.event_id) AS part, g.external_id
        FROM staged_gpu_ops AS g
        LEFT JOIN launches AS l ON l.correlation = g.correlation AND l.part = part_of(g.event_id)
        WHERE l.correlation IS NULL AND g.external_id > 0
    )
SELECT w.part, c.external_id, min(c.event_id) AS op_id
FROM staged_cpu_ops AS c
JOIN wanted AS w ON w.external_id = c.external_id AND w.part = part_of(c.event_id)
GROUP BY w.part, c.external_id
