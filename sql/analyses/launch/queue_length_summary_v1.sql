-- Launch queue length of each device stream: distribution over changes, and mean over time.
--
-- The distribution columns match HTA: they describe the values at the changes, regardless of how long each value
-- lasts. time_mean weights each value by its duration, so a burst of launches does not dominate the mean.
--
-- Title: Launch queue length
-- Shown: rank, stream, op_count, time_mean, p50_length, max_length, waiting_ns, span_ns
-- Also: queue
-- Status: stable
-- Since: 0.1
-- Reference: HTA get_queue_length_summary
-- Needs: GPU activity and runtime calls
-- Chart:
--   mark = "box"
--   title = "Queue length of each stream"
--   empty = "The queue lengths are unknown: the launches are not in the traces."
--   bar = ["rank", "device", "stream"]
--   statistic = "length"
--   measure = "Operations waiting"
CREATE OR REPLACE MACRO queue_length_summary_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false
) AS TABLE
-- Columns:
--   run             VARCHAR         Run name.
--   rank            INTEGER         Rank of the process.
--   device          BIGINT          Device number.
--   stream          BIGINT          Device stream.
--   op_count        BIGINT [count]  Number of operations that went through the queue.
--   unlinked_count  BIGINT [count]  Number of operations without a launch in the trace; other columns exclude them.
--   point_count     BIGINT [count]  Number of queue changes.
--   mean_length     DOUBLE [1]      Mean length over the changes.
--   std_length      DOUBLE [1]      Sample standard deviation over the changes; NULL for a single change.
--   min_length      BIGINT [1]      Shortest length.
--   p25_length      DOUBLE [1]      First quartile over the changes, interpolated.
--   p50_length      DOUBLE [1]      Median over the changes.
--   p75_length      DOUBLE [1]      Third quartile over the changes, interpolated.
--   max_length      BIGINT [1]      Longest length.
--   time_mean       DOUBLE [1]      Mean length over time, from the first to the last change.
--   waiting_ns      BIGINT [ns]     Time with at least one operation waiting.
--   span_ns         BIGINT [ns]     Time from the first to the last change.
WITH
    ops AS (
        SELECT
            g.run, g.rank, g.device, g.stream,
            count(g.launch_id) AS op_count,
            count(*) - count(g.launch_id) AS unlinked_count
        FROM lib.scoped_gpu_ops(runs, ranks, steps, include_last_profiler_step) AS g
        GROUP BY ALL
    ),
    points AS (
        SELECT q.*
        FROM lib.queue_length(runs, ranks, steps, include_last_profiler_step) AS q
    )
SELECT
    o.run,
    o.rank,
    o.device,
    o.stream,
    o.op_count,
    o.unlinked_count,
    count(p.queue_length) AS point_count,
    avg(p.queue_length) AS mean_length,
    lib.exact_std(p.queue_length) AS std_length,
    min(p.queue_length) AS min_length,
    quantile_cont(p.queue_length, 0.25)::DOUBLE AS p25_length,
    quantile_cont(p.queue_length, 0.5)::DOUBLE AS p50_length,
    quantile_cont(p.queue_length, 0.75)::DOUBLE AS p75_length,
    max(p.queue_length) AS max_length,
    sum(p.queue_length::HUGEINT * p.dur) / sum(p.dur) AS time_mean,
    coalesce(sum(p.dur) FILTER (p.queue_length > 0), 0)::BIGINT AS waiting_ns,
    coalesce(sum(p.dur), 0)::BIGINT AS span_ns
FROM ops AS o
LEFT JOIN points AS p
    ON p.run = o.run AND p.rank = o.rank AND p.device IS NOT DISTINCT FROM o.device
    AND p.stream IS NOT DISTINCT FROM o.stream
GROUP BY o.run, o.rank, o.device, o.stream, o.op_count, o.unlinked_count
ORDER BY o.run, o.rank, o.device, o.stream
