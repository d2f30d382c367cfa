-- Timeline of each rank: steps, annotations, host threads, idle time and device streams, as the rows of a chart.
--
-- Events shorter than a bucket are merged with other events of the same lane and part that start in the same bucket,
-- so the timeline of a whole job stays small. Longer events have a row of their own. Times are relative to the first
-- selected event. Host lanes are the threads with the most launches; they show outermost operators, and runtime calls
-- outside operators. Idle time is time within a step in which no stream of the rank is active, as in `idle_causes`.
-- Idle gaps of at least an eighth of a bucket have rows, labeled with the host activity that covers most of the gap.
--
-- Title: Timeline
-- Shown: rank, lane, start_ns, end_ns, name, part, step, op_count
-- Status: stable
-- Since: 0.1
-- Reference: Nsight Systems timeline view
-- Needs: GPU activity
-- Report: first 2; chart; at most 16 ranks
CREATE OR REPLACE MACRO timeline_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false,
    -- Number of buckets per run, divided among its ranks: with two ranks, each rank gets half as many.
    bucket_count BIGINT := 1000,
    -- Number of host threads to show per rank.
    thread_count BIGINT := 2
) AS TABLE
-- Columns:
--   run       VARCHAR         Run name.
--   rank      INTEGER         Rank of the process.
--   lane      VARCHAR         step, annotation, host, idle or device.
--   lane_id   BIGINT          Host thread or device stream; NULL for other lanes.
--   part      VARCHAR         For device operations, their class; for host events, operator or runtime call; for idle time, its cause as in idle_causes; otherwise the same as lane.
--   start_ns  BIGINT [ns]     Start, relative to the first selected event of the run.
--   end_ns    BIGINT [ns]     End of the last event in the row.
--   sum_ns    BIGINT [ns]     Total duration of the events; less than the row's length if there are gaps.
--   name      VARCHAR         Name of the longest event; for idle time, the host activity.
--   event_id  BIGINT          event_id of the longest event, the first one if several are equal; for idle time, of the longest activity; NULL if unknown.
--   step      BIGINT          Profiler step of the longest event; NULL outside steps.
--   op_count  BIGINT [count]  Number of events in the row.
WITH
    ops AS MATERIALIZED (
        SELECT g.run, g.rank, g.stream, g.class, g.name, g.event_id, g.step, g.ts, g.dur, g.launch_pid, g.launch_tid
        FROM lib.scoped_gpu_ops(runs, ranks, steps, include_last_profiler_step) AS g
    ),
    threads AS (
        SELECT
            o.run, o.rank, o.launch_pid AS pid, o.launch_tid AS tid,
            row_number() OVER (PARTITION BY o.run, o.rank ORDER BY count(*) DESC, o.launch_pid, o.launch_tid) AS nth
        FROM ops AS o
        WHERE o.launch_tid IS NOT NULL
        GROUP BY o.run, o.rank, o.launch_pid, o.launch_tid
    ),
    calls AS (
        SELECT c.run, c.rank, c.pid, c.tid, 'operator' AS part, c.name, c.event_id, c.step, c.in_last_step, c.ts, c.dur
        FROM cpu_ops AS c
        WHERE c.parent_op_id IS NULL AND NOT starts_with(c.name, 'ProfilerStep#')
        UNION ALL
        SELECT r.run, r.rank, r.pid, r.tid, 'runtime call', r.name, r.event_id, r.step, r.in_last_step, r.ts, r.dur
        FROM runtime_calls AS r
        WHERE r.op_id IS NULL
    ),
    outer_annotations AS (
        SELECT a.*
        FROM annotations AS a
        LEFT JOIN annotations AS p ON p.run = a.run AND p.rank = a.rank AND p.event_id = a.parent_annotation_id
        WHERE
            NOT a.on_gpu AND a.is_async IS NOT TRUE AND NOT starts_with(a.name, 'ProfilerStep#')
            AND (p.event_id IS NULL OR starts_with(p.name, 'ProfilerStep#'))
    ),
    rows_of_lanes AS MATERIALIZED (
        SELECT p.run, p.rank, 'step' AS lane, NULL::BIGINT AS lane_id, 'step' AS part, s.name, s.event_id, p.step, p.ts, p.step_ns AS dur
        FROM lib.scoped_steps(runs, ranks, steps, include_last_profiler_step) AS p
        JOIN steps AS s ON s.run = p.run AND s.rank = p.rank AND s.span = p.span AND s.step = p.step
        UNION ALL
        SELECT a.run, a.rank, 'annotation', NULL, 'annotation', a.name, a.event_id, a.step, a.ts, a.dur
        FROM outer_annotations AS a
        WHERE
            a.dur > 0 AND lib.is_requested(runs, a.run) AND lib.is_requested(ranks, a.rank) AND lib.is_requested(steps, a.step)
            AND (include_last_profiler_step OR NOT a.in_last_step)
        UNION ALL
        SELECT c.run, c.rank, 'host', c.tid, c.part, c.name, c.event_id, c.step, c.ts, c.dur
        FROM calls AS c
        JOIN threads AS t ON t.run = c.run AND t.rank = c.rank AND t.pid = c.pid AND t.tid = c.tid
        WHERE t.nth <= thread_count AND c.dur > 0 AND lib.is_requested(steps, c.step) AND (include_last_profiler_step OR NOT c.in_last_step)
        UNION ALL
        SELECT o.run, o.rank, 'device', o.stream, o.class, o.name, o.event_id, o.step, o.ts, o.dur FROM ops AS o
    ),
    -- Idle time may begin before any other event of a step. Time between recordings is excluded.
    chosen AS (
        SELECT r.run, r.rank, lib.span_of(r.event_id) AS span, r.ts, r.ts + r.dur AS end_ts FROM rows_of_lanes AS r
        UNION ALL
        SELECT p.run, p.rank, p.span, p.ts, p.ts + p.step_ns
        FROM lib.scoped_steps(runs, ranks, steps, include_last_profiler_step) AS p
    ),
    recorded AS MATERIALIZED (
        SELECT c.run, c.span, min(c.ts) AS from_ts, max(c.end_ts) AS to_ts, count(DISTINCT c.rank) AS rank_count
        FROM chosen AS c
        GROUP BY c.run, c.span
    ),
    extents AS (
        SELECT r.run, min(r.from_ts) AS from_ts, sum(r.to_ts - r.from_ts) AS total, max(r.rank_count) AS rank_count
        FROM recorded AS r
        GROUP BY r.run
    ),
    sized AS MATERIALIZED (
        SELECT e.run, e.from_ts, greatest(1, e.total * e.rank_count // greatest(1, bucket_count)) AS width
        FROM extents AS e
    ),
    placed AS (
        SELECT
            r.*, r.ts - z.from_ts AS start_ns, s.span,
            -- Short events share a bucket; long events have a row of their own.
            CASE WHEN r.dur < z.width AND r.lane <> 'step' THEN ((r.ts - s.from_ts) // z.width)::BIGINT ELSE -1 - r.event_id END AS bucket
        FROM rows_of_lanes AS r
        JOIN sized AS z ON z.run = r.run
        JOIN recorded AS s ON s.run = r.run AND s.span = lib.span_of(r.event_id)
    ),
    bars AS (
        SELECT
            p.run, p.rank, p.lane, p.lane_id, p.part, min(p.start_ns) AS start_ns, max(p.start_ns + p.dur) AS end_ns, sum(p.dur)::BIGINT AS sum_ns,
            arg_max({'name': p.name, 'event_id': p.event_id, 'step': p.step}, (p.dur, -p.start_ns, -p.event_id)) AS longest,
            count(*) AS op_count
        FROM placed AS p
        GROUP BY p.run, p.rank, p.lane, p.lane_id, p.part, p.span, p.bucket
    ),
    gaps AS MATERIALIZED (
        SELECT i.*
        FROM lib.idle_parts(runs, ranks, steps, include_last_profiler_step) AS i
        JOIN sized AS z ON z.run = i.run
        WHERE 8::HUGEINT * i.dur >= z.width
    ),
    reasons AS (
        SELECT w.part, w.cause, coalesce(w.name, w.call, w.cause) AS name, arg_max(w.event_id, (w.dur, -w.before_ns)) AS event_id, sum(w.dur) AS ns
        FROM lib.idle_reasons(runs, ranks, 'gaps', 'operator') AS w
        GROUP BY w.part, w.cause, coalesce(w.name, w.call, w.cause)
    ),
    chief AS (
        SELECT r.part, arg_max({'cause': r.cause, 'name': r.name, 'event_id': r.event_id}, (r.ns, r.cause, r.name)) AS reason
        FROM reasons AS r
        GROUP BY r.part
    ),
    all_rows AS (
        SELECT
            b.run, b.rank, b.lane, b.lane_id, b.part, b.start_ns, b.end_ns, b.sum_ns, b.longest.name AS name,
            b.longest.event_id AS event_id, b.longest.step AS step, b.op_count
        FROM bars AS b
        UNION ALL
        SELECT
            g.run, g.rank, 'idle', NULL, c.reason.cause, g.ts - z.from_ts, g.ts - z.from_ts + g.dur, g.dur, c.reason.name,
            coalesce(c.reason.event_id, g.next_id), g.in_steps[1], 1
        FROM gaps AS g
        JOIN chief AS c ON c.part = g.part
        JOIN sized AS z ON z.run = g.run
    )
SELECT a.run, a.rank, a.lane, a.lane_id, a.part, a.start_ns, a.end_ns, a.sum_ns, a.name, a.event_id, a.step, a.op_count
FROM all_rows AS a
ORDER BY a.run, a.rank, array_position(['step', 'annotation', 'host', 'idle', 'device'], a.lane), a.lane_id, a.start_ns, a.end_ns, a.part, a.event_id
