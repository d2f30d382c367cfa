-- Device utilization of each rank over the run, in buckets of equal length.
--
-- Busy time is the union of kernels, copies and memsets; the buckets of a rank sum to its busy time. All ranks share
-- the same buckets, from the first to the last device activity of the run; the last bucket may be shorter. Times are
-- NULL for buckets before a rank's capture begins or after it ends. A run with several recordings has buckets in each
-- recording, but none between recordings.
--
-- Title: GPU utilization over time
-- Shown: rank, start_ns, busy_pct, busy_ns, compute_ns, communication_ns, overlap_ns
-- Status: stable
-- Since: 0.1
-- Scope: runs, ranks; buckets cover the whole capture
-- Reference: Nsight Systems utilization heat map
-- Needs: GPU activity
-- Report: chart
CREATE OR REPLACE MACRO utilization_over_time_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    -- Maximum number of buckets per run, plus one for each further recording; values below 1 return no rows.
    bucket_count BIGINT := 100
) AS TABLE
-- Columns:
--   run               VARCHAR      Run name.
--   rank              INTEGER      Rank of the process.
--   bucket            BIGINT [1]   Bucket number, from 0.
--   start_ns          BIGINT [ns]  Start of the bucket, relative to the run's first event.
--   dur_ns            BIGINT [ns]  Length of the bucket.
--   observed_ns       BIGINT [ns]  Part of the bucket in which the rank was captured.
--   busy_ns           BIGINT [ns]  Time with any device activity; NULL if nothing was captured.
--   compute_ns        BIGINT [ns]  Time with a computation kernel running; NULL if nothing was captured.
--   communication_ns  BIGINT [ns]  Time with communication running; NULL if nothing was captured.
--   overlap_ns        BIGINT [ns]  Time with compute and communication overlapping; NULL if nothing was captured.
--   busy_pct          DOUBLE [%]   busy_ns as a share of observed_ns.
WITH
    ops AS MATERIALIZED (
        SELECT {'run': g.run, 'rank': g.rank, 'span': g.span} AS lane, g.class, g.ts, g.dur
        FROM gpu_ops AS g
        WHERE g.class <> 'sync' AND NOT g.is_suspect AND g.dur > 0 AND lib.is_requested(runs, g.run)
    ),
    active AS (
        SELECT o.lane.run AS run, o.lane.rank AS rank, o.lane.span AS span, min(o.ts) AS first_ts, max(o.ts + o.dur) AS last_end
        FROM ops AS o
        GROUP BY o.lane
    ),
    extents AS (
        SELECT a.run, a.span, min(a.first_ts) AS from_ts, max(a.last_end) AS to_ts
        FROM active AS a
        GROUP BY a.run, a.span
    ),
    wide AS (
        SELECT e.*, ((sum(e.to_ts - e.from_ts) OVER (PARTITION BY e.run) + bucket_count - 1) // bucket_count)::BIGINT AS width
        FROM extents AS e
        WHERE bucket_count >= 1
    ),
    counted AS (
        SELECT w.*, (w.to_ts - w.from_ts + w.width - 1) // w.width AS own_count FROM wide AS w
    ),
    sized AS MATERIALIZED (
        SELECT c.*, (sum(c.own_count) OVER (PARTITION BY c.run ORDER BY c.span) - c.own_count)::BIGINT AS first_bucket
        FROM counted AS c
    ),
    segments AS (
        SELECT g.lane.run AS run, g.lane.rank AS rank, g.lane.span AS span, g.ts, g.ts + g.dur AS end_ts, g.computes, g.communicates
        FROM lib.class_segments('ops') AS g
        WHERE (g.computes OR g.communicates OR g.copies) AND lib.is_requested(ranks, g.lane.rank)
    ),
    cut AS (
        SELECT
            s.run, s.rank, s.ts, s.end_ts, s.computes, s.communicates, z.from_ts, z.width, z.first_bucket,
            unnest(range((s.ts - z.from_ts) // z.width, (s.end_ts - 1 - z.from_ts) // z.width + 1)) AS bucket
        FROM segments AS s
        JOIN sized AS z ON z.run = s.run AND z.span = s.span
    ),
    pieces AS (
        SELECT
            c.run, c.rank, c.first_bucket + c.bucket AS bucket, c.computes, c.communicates,
            least(c.end_ts, c.from_ts + (c.bucket + 1) * c.width) - greatest(c.ts, c.from_ts + c.bucket * c.width) AS ns
        FROM cut AS c
    ),
    sums AS (
        SELECT
            p.run, p.rank, p.bucket,
            sum(p.ns)::BIGINT AS busy,
            sum(CASE WHEN p.computes THEN p.ns ELSE 0 END)::BIGINT AS computed,
            sum(CASE WHEN p.communicates THEN p.ns ELSE 0 END)::BIGINT AS communicated,
            sum(CASE WHEN p.computes AND p.communicates THEN p.ns ELSE 0 END)::BIGINT AS both
        FROM pieces AS p
        GROUP BY p.run, p.rank, p.bucket
    ),
    numbered AS (
        SELECT
            k.run, k.rank, least(k.offset_ns, a.first_ts) AS seen_from, greatest(k.offset_ns + k.dur, a.last_end) AS seen_to, z.from_ts, z.to_ts, z.width,
            z.first_bucket, unnest(range(z.own_count)) AS bucket
        FROM rank_spans AS k
        JOIN active AS a ON a.run = k.run AND a.rank = k.rank AND a.span = k.span
        JOIN sized AS z ON z.run = k.run AND z.span = k.span
        WHERE lib.is_requested(ranks, k.rank)
    ),
    placed AS (
        SELECT
            n.* REPLACE (n.first_bucket + n.bucket AS bucket), n.from_ts + n.bucket * n.width AS start_ts,
            least(n.to_ts, n.from_ts + (n.bucket + 1) * n.width) AS end_ts
        FROM numbered AS n
    ),
    seen AS (
        SELECT
            p.*, s.busy, s.computed, s.communicated, s.both,
            greatest(0, least(p.end_ts, p.seen_to) - greatest(p.start_ts, p.seen_from)) AS observed
        FROM placed AS p
        LEFT JOIN sums AS s ON s.run = p.run AND s.rank = p.rank AND s.bucket = p.bucket
    )
SELECT
    e.run,
    e.rank,
    e.bucket,
    e.start_ts AS start_ns,
    e.end_ts - e.start_ts AS dur_ns,
    e.observed AS observed_ns,
    CASE WHEN e.observed > 0 THEN coalesce(e.busy, 0) END AS busy_ns,
    CASE WHEN e.observed > 0 THEN coalesce(e.computed, 0) END AS compute_ns,
    CASE WHEN e.observed > 0 THEN coalesce(e.communicated, 0) END AS communication_ns,
    CASE WHEN e.observed > 0 THEN coalesce(e.both, 0) END AS overlap_ns,
    100 * (coalesce(e.busy, 0) / nullif(e.observed, 0)) AS busy_pct
FROM seen AS e
ORDER BY e.run, e.rank, e.bucket
