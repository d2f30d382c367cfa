-- Profiler steps on the host, the windows between their starts, and the last step of each rank.

-- name: profiler_steps
-- Profiler steps on the host: any ProfilerStep#N that is not a device-side annotation.
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
    -- The last step is the step with the latest start, even if an earlier step ends after it.
    c.ts = max(c.ts) OVER (PARTITION BY part_of(c.event_id)) AS is_last
FROM candidates AS c
WHERE regexp_matches(c.name, '^ProfilerStep\s*#\s*\d+')
ORDER BY part_of(c.event_id), c.ts, c.event_id;

-- name: step_windows
-- Profiler steps as non-overlapping windows: an event belongs to the most recently started step, if that step has
-- not ended. Host events look up their step while the call tree is built, because a range join for each table would
-- take a tenth of the ingestion time.
CREATE OR REPLACE TABLE step_windows AS
SELECT
    p.part,
    p.step,
    p.ts,
    least(p.end_ts, coalesce(lead(p.ts) OVER (PARTITION BY p.part ORDER BY p.ts, p.event_id), p.end_ts)) AS end_ts
FROM profiler_steps AS p;

-- name: steps_in_order
-- Trace, start, end and number of each profiler step that can contain an event, in order.
SELECT w.part, w.ts, w.end_ts, w.step
FROM step_windows AS w
WHERE w.step IS NOT NULL AND w.ts < w.end_ts
ORDER BY w.part, w.ts;

-- name: last_step
-- Start of each rank's last profiler step.
CREATE OR REPLACE TABLE last_step AS
SELECT p.part, max(p.ts) AS last_step_ts
FROM profiler_steps AS p
GROUP BY p.part;
