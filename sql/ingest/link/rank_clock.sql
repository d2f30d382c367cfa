-- First and last instant of each rank in the clock of its file [ns], and the end of the recording.
--
-- Complete events decide (the profiler's own span among them); a trace without any falls back to
-- its other events; NULL without any. What had not ended with the window was given its end. The recording ends with the profiler's span or the last
-- start of anything, whichever is later; NULL where the trace has no such span. total_ns is what the durations
-- of all complete events add up to, with those inside of others.
CREATE OR REPLACE TABLE rank_clock AS
WITH
    complete_events AS (
        SELECT
            part_of(e.event_id) AS part,
            min(e.ts) AS first_ts,
            max(e.ts) AS last_start_ts,
            max(e.ts + e.dur) AS last_ts,
            sum(abs(e.dur)) AS total_ns
        FROM (
            SELECT c.event_id, c.ts, c.dur FROM staged_cpu_ops AS c
            UNION ALL SELECT r.event_id, r.ts, r.dur FROM staged_runtime_calls AS r
            UNION ALL SELECT g.event_id, g.ts, g.dur FROM staged_gpu_ops AS g
            UNION ALL SELECT a.event_id, a.ts, a.dur FROM staged_annotations AS a
            UNION ALL SELECT p.event_id, p.ts, p.dur FROM staged_python_calls AS p
            UNION ALL SELECT o.event_id, o.ts, o.dur FROM staged_other_events AS o WHERE o.phase = 'X'
        ) AS e
        GROUP BY part_of(e.event_id)
    ),
    point_events AS (
        SELECT part_of(e.event_id) AS part, min(e.ts) AS first_ts, max(e.ts) AS last_ts
        FROM (
            SELECT m.event_id, m.ts FROM staged_memory_events AS m
            UNION ALL SELECT f.event_id, f.ts FROM staged_flows AS f
            UNION ALL SELECT c.event_id, c.ts FROM staged_counters AS c
            UNION ALL SELECT o.event_id, o.ts FROM staged_other_events AS o WHERE o.phase NOT IN ('M', 'X')
        ) AS e
        GROUP BY part_of(e.event_id)
    ),
    recording AS (
        SELECT
            part_of(o.event_id) AS part,
            max(o.ts + o.dur) FILTER (o.phase = 'X' AND o.cat = 'Trace') AS span_end_ts,
            max(o.ts) FILTER (o.name = 'Record Window End') AS window_end_ts
        FROM staged_other_events AS o
        GROUP BY part_of(o.event_id)
    )
SELECT
    j.part,
    coalesce(c.first_ts, p.first_ts) AS first_ts,
    coalesce(c.last_ts, p.last_ts) AS last_ts,
    CASE WHEN r.span_end_ts IS NOT NULL THEN greatest(r.span_end_ts, c.last_start_ts, p.last_ts) END AS recording_end_ts,
    r.window_end_ts,
    c.total_ns
FROM job AS j
LEFT JOIN complete_events AS c ON c.part = j.part
LEFT JOIN point_events AS p ON p.part = j.part
LEFT JOIN recording AS r ON r.part = j.part
