-- Distribution of idle gap lengths on each device stream by category, with the statistics of pandas describe().
--
-- Title: Distribution of idle gaps
-- Shown: rank, stream, category, gap_count, mean_ns, p50_ns, max_ns
-- Status: stable
-- Since: 0.1
-- Reference: HTA get_idle_time_breakdown, second table
-- Needs: GPU activity
CREATE OR REPLACE MACRO idle_time_stats_v1(
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
--   gap_count  BIGINT [count]  Number of gaps.
--   mean_ns    DOUBLE [ns]     Mean length.
--   std_ns     DOUBLE [ns]     Sample standard deviation; NULL for a single gap.
--   min_ns     BIGINT [ns]     Shortest gap.
--   p25_ns     DOUBLE [ns]     First quartile of the lengths, interpolated.
--   p50_ns     DOUBLE [ns]     Median length.
--   p75_ns     DOUBLE [ns]     Third quartile of the lengths, interpolated.
--   max_ns     BIGINT [ns]     Longest gap.
SELECT
    i.run,
    i.rank,
    i.device,
    i.stream,
    i.category,
    count(*) AS gap_count,
    avg(i.gap_ns) AS mean_ns,
    lib.exact_std(i.gap_ns) AS std_ns,
    min(i.gap_ns) AS min_ns,
    quantile_cont(i.gap_ns, 0.25)::DOUBLE AS p25_ns,
    quantile_cont(i.gap_ns, 0.5)::DOUBLE AS p50_ns,
    quantile_cont(i.gap_ns, 0.75)::DOUBLE AS p75_ns,
    max(i.gap_ns) AS max_ns
FROM lib.idle_gaps(runs, ranks, steps, include_last_profiler_step, kernel_wait_below_ns) AS i
GROUP BY ALL
ORDER BY i.run, i.rank, i.device, i.stream, i.category
