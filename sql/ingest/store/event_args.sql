-- All arguments, as JSON, of events with unknown keys, nulls, values of an unexpected type, or process or thread ids
-- that are not numbers.
WITH
    leftovers AS (
        SELECT c.event_id, c.args, c.pid, c.tid FROM staged_cpu_ops AS c
        UNION ALL SELECT r.event_id, r.args, r.pid, r.tid FROM staged_runtime_calls AS r
        UNION ALL SELECT g.event_id, g.args, g.pid, g.tid FROM staged_gpu_ops AS g
        UNION ALL SELECT a.event_id, a.args, a.pid, a.tid FROM staged_annotations AS a
        UNION ALL SELECT p.event_id, p.args, p.pid, p.tid FROM staged_python_calls AS p
        UNION ALL SELECT m.event_id, m.args, m.pid, m.tid FROM staged_memory_events AS m
        UNION ALL SELECT f.event_id, f.args, f.pid, f.tid FROM staged_flows AS f
        UNION ALL
        SELECT DISTINCT n.event_id, n.args, n.pid, n.tid
        FROM staged_counters AS n
        WHERE n.value IS NULL OR TRY_CAST(n.pid AS BIGINT) IS NULL OR TRY_CAST(n.tid AS BIGINT) IS NULL
    )
SELECT
    j.run,
    j.rank,
    own_id(v.event_id) AS event_id,
    v.args,
    CASE WHEN TRY_CAST(v.pid AS BIGINT) IS NULL THEN v.pid END AS pid_text,
    CASE WHEN TRY_CAST(v.tid AS BIGINT) IS NULL THEN v.tid END AS tid_text
FROM leftovers AS v
JOIN job AS j ON j.part = part_of(v.event_id)
WHERE
    v.args IS NOT NULL
    OR (v.pid IS NOT NULL AND TRY_CAST(v.pid AS BIGINT) IS NULL)
    OR (v.tid IS NOT NULL AND TRY_CAST(v.tid AS BIGINT) IS NULL)
ORDER BY v.event_id
