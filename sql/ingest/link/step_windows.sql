-- Profiler steps as windows that do not overlap: an event belongs to the step that started last
-- before it, if that step has not ended. A range join with these few rows costs half of an ASOF.
CREATE OR REPLACE TEMP TABLE step_windows AS
SELECT
    p.step,
    p.ts,
    least(p.end_ts, coalesce(lead(p.ts) OVER (ORDER BY p.ts, p.event_id), p.end_ts)) AS end_ts
FROM profiler_steps AS p
