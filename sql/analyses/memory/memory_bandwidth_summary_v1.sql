-- Bandwidth of copies and memsets by kind: distribution, mean over time, and bytes.
--
-- As in HTA, the distribution covers the non-zero values of the recorded bandwidth, regardless of how long each value
-- lasts. The means over time cover the time in which at least one copy of the kind runs.
--
-- Title: Copy bandwidth
-- Shown: rank, name, total_bytes, busy_ns, time_mean_gbps, p50_gbps, max_gbps, copy_count
-- Status: stable
-- Since: 0.1
-- Reference: HTA get_memory_bw_summary
-- Needs: GPU activity
-- Chart:
--   mark = "box"
--   title = "Bandwidth of each kind of copy"
--   empty = "The traces record no bandwidth of these copies."
--   bar = ["rank", "device", "name"]
--   statistic = "gbps"
--   measure = "Recorded bandwidth [GB/s]"
--   color = "memory"
CREATE OR REPLACE MACRO memory_bandwidth_summary_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false,
    -- Duration assumed for copies recorded with duration 0, as in traces with whole microseconds [ns]; 0 excludes
    -- them. HTA assumes 1 us.
    zero_duration_as_ns BIGINT := 1000
) AS TABLE
-- Columns:
--   run                 VARCHAR         Run name.
--   rank                INTEGER         Rank of the process.
--   device              BIGINT          Device number.
--   name                VARCHAR         Kind of copy: Memcpy DtoH, Memcpy HtoD, Memcpy DtoD, ..., Memset or Memcpy Unknown.
--   copy_count          BIGINT [count]  Number of copies.
--   zero_count          BIGINT [count]  Number of copies recorded with a duration of 0.
--   total_bytes         BIGINT [bytes]  Total bytes of the copies with a recorded size; NULL if there are none.
--   busy_ns             BIGINT [ns]     Time with at least one copy running.
--   point_count         BIGINT [count]  Number of non-zero values of the recorded bandwidth.
--   mean_gbps           DOUBLE [GB/s]   Mean of the non-zero values; NULL if no bandwidth is recorded.
--   std_gbps            DOUBLE [GB/s]   Sample standard deviation of the non-zero values; NULL for a single value.
--   min_gbps            DOUBLE [GB/s]   Smallest of the non-zero values.
--   p25_gbps            DOUBLE [GB/s]   First quartile of the non-zero values, interpolated.
--   p50_gbps            DOUBLE [GB/s]   Median of the non-zero values.
--   p75_gbps            DOUBLE [GB/s]   Third quartile of the non-zero values, interpolated.
--   max_gbps            DOUBLE [GB/s]   Largest of the non-zero values.
--   time_mean_gbps      DOUBLE [GB/s]   Mean recorded bandwidth over busy_ns.
--   computed_mean_gbps  DOUBLE [GB/s]   Mean of bytes / duration over busy_ns.
WITH
    totals AS (
        SELECT
            k.run, k.rank, k.device, k.name,
            count(*) AS copy_count,
            count(*) FILTER (k.has_zero_duration) AS zero_count,
            sum(k.bytes)::BIGINT AS total_bytes
        FROM lib.copy_rates(runs, ranks, steps, include_last_profiler_step, zero_duration_as_ns) AS k
        GROUP BY ALL
    ),
    busy AS (
        SELECT
            b.*,
            CASE WHEN b.recorded_rate > 0 THEN b.recorded_rate END AS rate
        FROM lib.copy_bandwidth(runs, ranks, steps, include_last_profiler_step, zero_duration_as_ns) AS b
        WHERE b.running_count > 0
    ),
    -- Skip points at which only the computed bandwidth changes.
    points AS (
        SELECT
            b.*,
            b.rate IS DISTINCT FROM lag(b.rate) OVER by_time
            OR b.ts IS DISTINCT FROM lag(b.ts + b.dur) OVER by_time AS is_change
        FROM busy AS b
        WINDOW by_time AS (PARTITION BY b.run, b.rank, b.device, b.name ORDER BY b.ts)
    )
SELECT
    t.run,
    t.rank,
    t.device,
    t.name,
    t.copy_count,
    t.zero_count,
    t.total_bytes,
    coalesce(sum(p.dur), 0)::BIGINT AS busy_ns,
    count(p.rate) FILTER (p.is_change) AS point_count,
    avg(p.rate) FILTER (p.is_change) / 1e9 AS mean_gbps,
    lib.exact_std(CASE WHEN p.is_change THEN p.rate END) / 1e9 AS std_gbps,
    min(p.rate) / 1e9 AS min_gbps,
    quantile_cont(p.rate, 0.25) FILTER (p.is_change)::DOUBLE / 1e9 AS p25_gbps,
    quantile_cont(p.rate, 0.5) FILTER (p.is_change)::DOUBLE / 1e9 AS p50_gbps,
    quantile_cont(p.rate, 0.75) FILTER (p.is_change)::DOUBLE / 1e9 AS p75_gbps,
    max(p.rate) / 1e9 AS max_gbps,
    sum(p.recorded_rate::HUGEINT * p.dur) / sum(p.dur) FILTER (p.recorded_rate IS NOT NULL) / 1e9 AS time_mean_gbps,
    sum(p.computed_rate::HUGEINT * p.dur) / sum(p.dur) FILTER (p.computed_rate IS NOT NULL) / 1e9 AS computed_mean_gbps
FROM totals AS t
LEFT JOIN points AS p
    ON p.run = t.run AND p.rank = t.rank AND p.device IS NOT DISTINCT FROM t.device AND p.name = t.name
GROUP BY t.run, t.rank, t.device, t.name, t.copy_count, t.zero_count, t.total_bytes
ORDER BY t.run, t.rank, t.device, t.name
