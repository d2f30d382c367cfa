-- Host profiler steps: any ProfilerStep#N that is not a device-side annotation.
CREATE OR REPLACE TABLE profiler_steps AS
WITH
    candidates AS (
        SELECT a.event_id, a.ts, a.dur, a.pid, a.tid, a.name
        FROM staged_annotations AS a
        WHERE a.cat = 'user_annotation' AND starts_with(a.name, 'ProfilerStep')
        UNION ALL
        SELECT c.event_id, c.ts, c.dur, c.pid, c.tid, c.name
        FROM staged_cpu_ops AS c
        WHERE starts_with(c.name, 'ProfilerStep')
    )
SELECT
    part_of(c.event_id) AS part,
    c.event_id,
    TRY_CAST(regexp_extract(c.name, '^ProfilerStep\s*#\s*(\d+)', 1) AS BIGINT) AS step,
    c.ts,
    c.ts + c.dur AS end_ts,
    c.pid,
    c.tid,
    c.name,
    -- An event belongs to the step that started last before it and has not ended.
    c.ts = max(c.ts) OVER (PARTITION BY part_of(c.event_id)) AS is_last
FROM candidates AS c
WHERE regexp_matches(c.name, '^ProfilerStep\s*#\s*\d+')
ORDER BY part_of(c.event_id), c.ts, c.event_id
