-- Hardware counters of each kernel from PM sampling: time-weighted means while the kernel runs.
--
-- A sample covers the time to the next sample of its device. The last sample, and a sample before a loss (the next
-- sample is more than 1.5 times the median interval away), are assumed to cover the median interval. Every kernel that
-- runs on the device during a sample gets the value of the sample. Samples usually last longer than kernels;
-- running_pct is the share of the samples' duration during which the kernel runs. Kernels on devices without samples
-- have no rows.
--
-- Title: Hardware counters of kernels
-- Shown: rank, busy_ns, short_name, counter, mean_value, sampled_pct, running_pct, device
-- Report: if counters
-- Status: stable
-- Since: 0.1
-- Reference: none
-- Needs: GPU activity and hardware counters by PM sampling (Kineto's activity type hardware_counters)
CREATE OR REPLACE MACRO kernel_counters_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false,
    -- Whether to return one row per launch of a kernel instead of one per kernel name.
    by_launch BOOLEAN := false
) AS TABLE
-- Columns:
--   run           VARCHAR         Run name.
--   rank          INTEGER         Rank of the process.
--   device        BIGINT          Device of the kernel and of the samples.
--   short_name    VARCHAR         Name without template arguments, parameters and return type; several kernels of the run with the same name also show the arguments in which they differ.
--   name          VARCHAR         Kernel name.
--   event_id      BIGINT          event_id of the kernel in gpu_ops; NULL without by_launch.
--   counter       VARCHAR         Name of the counter.
--   mean_value    DOUBLE [1]      Mean over the sampled time of the kernel, in the counter's own unit; NULL if no sample covers this time.
--   sample_count  BIGINT [count]  Number of samples during which the kernel runs.
--   kernel_count  BIGINT [count]  Number of launches.
--   busy_ns       BIGINT [ns]     Time with at least one of the launches running.
--   sampled_pct   DOUBLE [%]      Share of busy_ns that samples cover; NULL if busy_ns is 0.
--   running_pct   DOUBLE [%]      Share of the samples' duration during which the kernel runs; if low, mean_value mostly describes other work. NULL without samples.
WITH
    sampled AS MATERIALIZED (
        SELECT c.run, c.rank, c.span, c.device, c.ts, c.name AS counter, c.value
        FROM counters AS c
        WHERE
            c.category = 'hardware_counters'
            AND c.device IS NOT NULL
            AND lib.is_requested(runs, c.run)
            AND lib.is_requested(ranks, c.rank)
    ),
    moments AS (
        SELECT DISTINCT s.run, s.rank, s.span, s.device, s.ts FROM sampled AS s
    ),
    distances AS (
        SELECT m.*, lead(m.ts) OVER (PARTITION BY m.run, m.rank, m.span, m.device ORDER BY m.ts) - m.ts AS distance
        FROM moments AS m
    ),
    usual AS (
        SELECT d.run, d.rank, d.span, d.device, quantile_disc(d.distance, 0.5) AS distance
        FROM distances AS d
        GROUP BY d.run, d.rank, d.span, d.device
    ),
    -- A single sample is excluded, because its length is unknown.
    samples AS MATERIALIZED (
        SELECT
            d.run, d.rank, d.device, d.ts,
            CASE WHEN 2 * d.distance <= 3 * u.distance THEN d.distance ELSE u.distance END AS dur,
            row_number() OVER (PARTITION BY d.run, d.rank, d.device ORDER BY d.ts) AS position
        FROM distances AS d
        JOIN usual AS u ON u.run = d.run AND u.rank = d.rank AND u.span = d.span AND u.device = d.device
        WHERE u.distance > 0
    ),
    known AS MATERIALIZED (
        SELECT DISTINCT s.run, s.rank, s.device, s.counter FROM sampled AS s
    ),
    kernels AS (
        SELECT
            {
                'run': g.run, 'rank': g.rank, 'device': g.device, 'name': g.name,
                'event_id': CASE WHEN by_launch THEN g.event_id END
            } AS lane,
            g.ts,
            g.dur
        FROM lib.scoped_gpu_ops(runs, ranks, steps, include_last_profiler_step) AS g
        WHERE g.kind = 'kernel' AND (g.run, g.rank, g.device) IN (SELECT (k.run, k.rank, k.device) FROM known AS k)
    ),
    busy AS MATERIALIZED (
        SELECT m.lane, m.ts, m.dur, m.span_count FROM lib.merged_intervals('kernels') AS m
    ),
    -- Samples do not overlap, so the samples covering an interval run from the last sample that starts at or before
    -- the start of the interval to the last sample that starts before its end.
    moves AS (
        SELECT s.run, s.rank, s.device, s.ts AS at_ts, 1 AS turn, s.position, NULL AS lane, NULL::BIGINT AS ts, NULL::BIGINT AS dur
        FROM samples AS s
        UNION ALL
        SELECT b.lane.run, b.lane.rank, b.lane.device, b.ts, 2, NULL, b.lane, b.ts, b.dur FROM busy AS b
        UNION ALL
        SELECT b.lane.run, b.lane.rank, b.lane.device, b.ts + b.dur, 0, NULL, b.lane, b.ts, b.dur FROM busy AS b
    ),
    reached AS (
        SELECT
            v.lane, v.ts, v.dur, v.turn,
            coalesce(max(v.position) OVER (
                PARTITION BY v.run, v.rank, v.device ORDER BY v.at_ts, v.turn ROWS UNBOUNDED PRECEDING
            ), 0) AS position
        FROM moves AS v
    ),
    ranges AS (
        SELECT
            r.lane, r.ts, r.dur,
            max(r.position) FILTER (r.turn = 2) AS first_position,
            max(r.position) FILTER (r.turn = 0) AS last_position
        FROM reached AS r
        WHERE r.turn <> 1
        GROUP BY r.lane, r.ts, r.dur
    ),
    touched AS (
        SELECT r.lane, r.ts, r.dur, unnest(range(r.first_position, r.last_position + 1)) AS position
        FROM ranges AS r
    ),
    shared AS (
        SELECT
            t.lane,
            s.run, s.rank, s.device,
            s.ts AS sample_ts,
            s.dur AS sample_ns,
            sum(least(t.ts + t.dur, s.ts + s.dur) - greatest(t.ts, s.ts))::BIGINT AS overlap_ns
        FROM touched AS t
        JOIN samples AS s
            ON s.run = t.lane.run AND s.rank = t.lane.rank AND s.device = t.lane.device AND s.position = t.position
        WHERE least(t.ts + t.dur, s.ts + s.dur) > greatest(t.ts, s.ts)
        GROUP BY t.lane, s.run, s.rank, s.device, s.ts, s.dur
    ),
    measured AS (
        SELECT
            o.lane, v.counter,
            lib.weighted_mean(v.value, o.overlap_ns) AS mean_value,
            count(*) AS sample_count,
            sum(o.overlap_ns)::BIGINT AS sampled_ns,
            sum(o.sample_ns)::BIGINT AS sample_ns
        FROM shared AS o
        JOIN sampled AS v ON v.run = o.run AND v.rank = o.rank AND v.device = o.device AND v.ts = o.sample_ts
        WHERE v.value IS NOT NULL
        GROUP BY o.lane, v.counter
    ),
    totals AS (
        SELECT b.lane, sum(b.dur)::BIGINT AS busy_ns, sum(b.span_count)::BIGINT AS kernel_count
        FROM busy AS b
        GROUP BY b.lane
    ),
    -- Names of the whole run, so that a kernel has one short name in all ranks and steps.
    kernel_names AS (
        SELECT DISTINCT g.run, g.name FROM gpu_ops AS g WHERE lib.is_requested(runs, g.run)
    ),
    short AS (
        SELECT n.* FROM lib.distinct_short_names('kernel_names') AS n
    )
SELECT
    k.run,
    k.rank,
    k.device,
    h.short_name,
    t.lane.name AS name,
    t.lane.event_id AS event_id,
    k.counter,
    m.mean_value,
    coalesce(m.sample_count, 0) AS sample_count,
    t.kernel_count,
    t.busy_ns,
    100 * (coalesce(m.sampled_ns, 0) / nullif(t.busy_ns, 0)) AS sampled_pct,
    100 * (m.sampled_ns / m.sample_ns) AS running_pct
FROM totals AS t
JOIN known AS k ON k.run = t.lane.run AND k.rank = t.lane.rank AND k.device = t.lane.device
JOIN short AS h ON h.run = t.lane.run AND h.name = t.lane.name
LEFT JOIN measured AS m ON m.lane = t.lane AND m.counter = k.counter
ORDER BY k.run, k.rank, k.device, t.busy_ns DESC, t.lane.name, t.lane.event_id, k.counter
