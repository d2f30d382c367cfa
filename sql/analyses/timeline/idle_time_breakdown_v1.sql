-- Idle time of each device stream by category.
--
-- Every stream has a row for each category of idle_gaps, including categories without gaps. idle_pct is NULL for a
-- stream that is never idle.
--
-- Title: Idle time by cause
-- Shown: rank, stream, category, idle_ns, idle_pct, gap_count
-- Also: gpu idle, idle time, bubbles, gpu bubbles, utilization loss
-- Status: stable
-- Since: 0.1
-- Reference: HTA get_idle_time_breakdown, first table
-- Needs: GPU activity
-- Chart:
--   mark = "stack"
--   title = "Why device streams are idle"
--   notes = [
--     "Sum over each stream, between its operations; over all streams of a rank if there are many. host_wait: the host had",
--     "not launched the next operation yet. kernel_wait: a short gap in the queue. other: a longer gap, for example a wait",
--     "for another stream.",
--   ]
--   bar = ["rank", "device", "stream"]
--   legend = "Cause"
--   whole = "the idle time"
--   value = "idle_ns"
--   part = "category"
--   parts.host_wait = ["host_wait", "wait"]
--   parts.kernel_wait = ["kernel_wait", "#56B4E9"]
--   parts.other = ["other", "normal"]
CREATE OR REPLACE MACRO idle_time_breakdown_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false,
    -- Upper limit of a kernel_wait gap, exclusive [ns]. HTA's default is 30 us, although its documentation says ns.
    kernel_wait_below_ns BIGINT := 30000
) AS TABLE
-- Columns:
--   run        VARCHAR         Run name.
--   rank       INTEGER         Rank of the process.
--   device     BIGINT          Device number.
--   stream     BIGINT          Device stream.
--   category   VARCHAR         Category of the gap: host_wait, kernel_wait or other.
--   gap_count  BIGINT [count]  Number of gaps of this category.
--   idle_ns    BIGINT [ns]     Total length of these gaps.
--   idle_pct   DOUBLE [%]      Share of the stream's idle time; NULL if there is none.
WITH
    streams AS (
        SELECT DISTINCT g.run, g.rank, g.device, g.stream
        FROM lib.scoped_gpu_ops(runs, ranks, steps, include_last_profiler_step) AS g
        WHERE g.stream IS NOT NULL
    ),
    categories AS (
        SELECT unnest(['host_wait', 'kernel_wait', 'other']) AS category
    ),
    gaps AS (
        SELECT i.run, i.rank, i.device, i.stream, i.category, count(*) AS gap_count, sum(i.gap_ns)::BIGINT AS idle_ns
        FROM lib.idle_gaps(runs, ranks, steps, include_last_profiler_step, kernel_wait_below_ns) AS i
        GROUP BY ALL
    )
SELECT
    s.run,
    s.rank,
    s.device,
    s.stream,
    k.category,
    coalesce(p.gap_count, 0) AS gap_count,
    coalesce(p.idle_ns, 0) AS idle_ns,
    100::DOUBLE * coalesce(p.idle_ns, 0)
    / sum(p.idle_ns) OVER (PARTITION BY s.run, s.rank, s.device, s.stream) AS idle_pct
FROM streams AS s
CROSS JOIN categories AS k
LEFT JOIN gaps AS p
    ON p.run = s.run
    AND p.rank = s.rank
    AND p.device IS NOT DISTINCT FROM s.device
    AND p.stream = s.stream
    AND p.category = k.category
ORDER BY s.run, s.rank, s.device, s.stream, k.category
