-- Clock, steps and recording end of each rank, which place its rows in time.

-- name: job
-- One row per trace: the run and rank under which it is ingested, and its metadata.
--
-- part is the trace number in the event ids. role is the role of the process as given when ingesting; NULL if not
-- given. first_rank is the rank that the trace's rank 0 has in the run; not 0 if roles count their ranks separately.
CREATE OR REPLACE TABLE job AS
WITH
    jobs AS (
        SELECT unnest(
            $jobs::STRUCT(part BIGINT, run VARCHAR, rank INTEGER, rank_source VARCHAR, role VARCHAR, first_rank INTEGER, source VARCHAR, event_count BIGINT, text_bytes BIGINT, metadata VARCHAR)[]
        ) AS j
    )
SELECT
    j.j.part, j.j.run, j.j.rank, j.j.rank_source, j.j.role, j.j.first_rank, j.j.source, j.j.event_count, j.j.text_bytes,
    j.j.metadata::JSON AS metadata
FROM jobs AS j;

-- name: rank_clock
-- First and last instant of each rank on the clock of its file [ns], and the end of the recording.
--
-- Both instants come from complete events, including the profiler's own span. Without complete events, they come from
-- all other events; without any events, they are NULL. Events that were still running when the window ended were
-- recorded with the end of the window. The recording ends with the profiler's span or with the last start of any event,
-- whichever is later; NULL if the trace does not contain the profiler's span. total_ns is the total duration of all
-- complete events, including nested events.
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
LEFT JOIN recording AS r ON r.part = j.part;

-- name: rank_frame
-- One row per rank with everything that places its rows in time, so that other statements need one join, not three.
--
-- start_ns adds baseTimeNanoseconds if the trace has it and is then Unix time. A base time outside 1970 to 2065 is
-- ignored, but stays in the metadata.
CREATE OR REPLACE TABLE rank_frame AS
WITH
    clock AS (
        SELECT m.*, TRY_CAST(m.metadata ->> '$.baseTimeNanoseconds' AS BIGINT) AS stated
        FROM job AS m
    ),
    base AS (
        SELECT
            c.part,
            c.run,
            c.rank,
            c.first_rank,
            CASE WHEN c.stated BETWEEN 0 AND 3_000_000_000_000_000_000 THEN c.stated END AS base_time_ns
        FROM clock AS c
    )
SELECT
    b.part,
    b.run,
    b.rank,
    b.first_rank,
    k.first_ts,
    k.last_ts,
    k.recording_end_ts,
    k.window_end_ts,
    b.base_time_ns,
    coalesce(b.base_time_ns, 0) + k.first_ts AS start_ns,
    s.last_step_ts
FROM base AS b
JOIN rank_clock AS k ON k.part = b.part
LEFT JOIN last_step AS s ON s.part = b.part;

-- name: frames
-- The frames of all ranks as one list; the frame of part n is at index n + 1.
--
-- Statements that write in event order take the list as $frames, because a join does not guarantee order.
SELECT list(
    {
        'run': j.run,
        'rank': j.rank,
        'first_rank': j.first_rank,
        'first_ts': j.first_ts,
        'last_step_ts': j.last_step_ts,
        'window_end_ts': j.window_end_ts,
        'recording_end_ts': j.recording_end_ts
    }
    ORDER BY p.part
)
FROM (SELECT unnest(range(max(r.part) + 1)) AS part FROM rank_frame AS r) AS p
LEFT JOIN rank_frame AS j ON j.part = p.part;

-- name: frame_of
-- Frame of an event's trace, looked up in the list that the statement `frames` returns.
CREATE OR REPLACE MACRO frame_of(frames, id) AS
    (frames::STRUCT(run VARCHAR, rank INTEGER, first_rank INTEGER, first_ts BIGINT, last_step_ts BIGINT, window_end_ts BIGINT, recording_end_ts BIGINT)[])[part_of(id) + 1];
