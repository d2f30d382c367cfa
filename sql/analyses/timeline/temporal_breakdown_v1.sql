-- Breakdown of each GPU's time into compute, exposed communication, exposed copies and idle.
--
-- The span runs from the start of the first kernel, copy or memset to the end of the last; time outside it is not
-- counted. Times are unions over all streams of the rank, so overlapping operations count once. Compute + exposed
-- communication + exposed memory + idle equals the span exactly. Exposed communication is not overlapped by compute;
-- exposed memory is not overlapped by compute or communication. non_compute is the sum of both exposed parts. As in
-- HTA, shares are of the whole span, and time in which the device ran unrecorded work counts as idle; step_accounting
-- excludes it. Synchronizations do not count as activity. Operations with an impossible duration (negative, or ending
-- far after the recording) count only in suspect_count and suspect_ns.
--
-- Title: Where GPU time goes
-- Shown: rank, span_ns, compute_pct, exposed_communication_pct, exposed_memory_pct, idle_pct, compute_ns, idle_ns
-- Also: busy time, gpu busy, gpu time, utilization, breakdown
-- Status: stable
-- Since: 0.1
-- Reference: HTA get_temporal_breakdown
-- Needs: GPU activity
-- Report: first 7
-- Chart:
--   mark = "stack"
--   title = "Where the time of each GPU goes"
--   notes = ["From the first to the last operation of each rank. Exposed: not overlapped by computation."]
--   legend = "GPU time"
--   whole = "the span"
--   parts.compute_ns = "computation"
--   parts.exposed_communication_ns = "exposed communication"
--   parts.exposed_memory_ns = "exposed memory"
--   parts.idle_ns = "idle"
CREATE OR REPLACE MACRO temporal_breakdown_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false
) AS TABLE
-- Columns:
--   run                        VARCHAR         Run name.
--   rank                       INTEGER         Rank of the process.
--   span_ns                    BIGINT [ns]     Time from the first start to the last end.
--   idle_ns                    BIGINT [ns]     Time with no activity on the device.
--   compute_ns                 BIGINT [ns]     Time with computation running.
--   non_compute_ns             BIGINT [ns]     Time with device activity but no computation running.
--   exposed_communication_ns   BIGINT [ns]     Time with communication running, not overlapped by compute.
--   exposed_memory_ns          BIGINT [ns]     Time with copies or memsets running, not overlapped by compute or communication.
--   idle_pct                   DOUBLE [%]      idle / span; NULL for an empty span.
--   compute_pct                DOUBLE [%]      compute / span.
--   non_compute_pct            DOUBLE [%]      non_compute / span.
--   exposed_communication_pct  DOUBLE [%]      exposed communication / span.
--   exposed_memory_pct         DOUBLE [%]      exposed memory / span.
--   kernel_time_ns             BIGINT [ns]     Sum of all durations; concurrent operations each count.
--   suspect_count              BIGINT [count]  Number of device operations excluded because of an impossible duration.
--   suspect_ns                 BIGINT [ns]     Recorded duration of the excluded operations; no other column contains it.
WITH
    spans AS (
        SELECT {'run': g.run, 'rank': g.rank, 'span': g.span} AS lane, g.class, g.ts, g.dur
        FROM lib.scoped_gpu_ops(runs, ranks, steps, include_last_profiler_step) AS g
    ),
    totals AS (
        SELECT s.lane.run AS run, s.lane.rank AS rank, sum(s.dur)::BIGINT AS kernel_time_ns
        FROM spans AS s
        GROUP BY s.lane.run, s.lane.rank
    ),
    times AS (
        SELECT
            c.lane.run AS run,
            c.lane.rank AS rank,
            sum(c.dur)::BIGINT AS span_ns,
            coalesce(sum(c.dur) FILTER (c.computes), 0)::BIGINT AS compute_ns,
            coalesce(sum(c.dur) FILTER (c.communicates AND NOT c.computes), 0)::BIGINT AS exposed_communication_ns,
            coalesce(sum(c.dur) FILTER (c.copies AND NOT c.computes AND NOT c.communicates), 0)::BIGINT AS exposed_memory_ns
        FROM lib.class_segments('spans') AS c
        GROUP BY c.lane.run, c.lane.rank
    ),
    parts AS (
        SELECT
            t.*,
            t.exposed_communication_ns + t.exposed_memory_ns AS non_compute_ns,
            t.span_ns - t.compute_ns - t.exposed_communication_ns - t.exposed_memory_ns AS idle_ns
        FROM times AS t
    ),
    -- Operations that lib.scoped_gpu_ops excludes because of an impossible duration.
    suspects AS (
        SELECT g.run, g.rank, count(*) AS suspect_count, sum(g.dur)::BIGINT AS suspect_ns
        FROM gpu_ops AS g
        WHERE
            g.class <> 'sync'
            AND g.is_suspect
            AND lib.is_requested(runs, g.run)
            AND lib.is_requested(ranks, g.rank)
            AND lib.is_requested(steps, g.step)
            AND (include_last_profiler_step OR NOT g.in_last_step)
        GROUP BY g.run, g.rank
    )
SELECT
    p.run,
    p.rank,
    p.span_ns,
    p.idle_ns,
    p.compute_ns,
    p.non_compute_ns,
    p.exposed_communication_ns,
    p.exposed_memory_ns,
    100::DOUBLE * p.idle_ns / nullif(p.span_ns, 0) AS idle_pct,
    100::DOUBLE * p.compute_ns / nullif(p.span_ns, 0) AS compute_pct,
    100::DOUBLE * p.non_compute_ns / nullif(p.span_ns, 0) AS non_compute_pct,
    100::DOUBLE * p.exposed_communication_ns / nullif(p.span_ns, 0) AS exposed_communication_pct,
    100::DOUBLE * p.exposed_memory_ns / nullif(p.span_ns, 0) AS exposed_memory_pct,
    t.kernel_time_ns,
    coalesce(x.suspect_count, 0) AS suspect_count,
    coalesce(x.suspect_ns, 0) AS suspect_ns
FROM parts AS p
JOIN totals AS t ON t.run = p.run AND t.rank = p.rank
LEFT JOIN suspects AS x ON x.run = p.run AND x.rank = p.rank
ORDER BY p.run, p.rank
