-- Gaps on each device stream with their category, for idle_gaps, idle_time_breakdown and idle_time_stats.
--
-- A gap lies between the running maximum of ends and the next start, so overlapping kernels have no gap between them
-- (HTA subtracts the previous row's end and sums negative gaps, Q27). host_wait: the next operation was launched
-- after all previous operations had ended. kernel_wait: any other gap shorter than the threshold. other: all
-- remaining gaps. A gap before an operation whose launch is not in the trace is never host_wait.
CREATE OR REPLACE MACRO lib.idle_gaps(
    runs,
    ranks,
    steps,
    include_last_profiler_step,
    -- Upper limit for the length of a kernel_wait gap, exclusive [ns].
    kernel_wait_below_ns
) AS TABLE
-- Columns:
--   run        VARCHAR      Run name.
--   rank       INTEGER      Rank of the process.
--   device     BIGINT       Device number.
--   stream     BIGINT       Device stream.
--   event_id   BIGINT       event_id of the operation that ends the gap.
--   name       VARCHAR      Name of that operation.
--   ts         BIGINT [ns]  Start of that operation.
--   launch_id  BIGINT       event_id of the call that launched it; NULL if not in the trace.
--   launch_ts  BIGINT [ns]  Start of the launching call.
--   op_id      BIGINT       event_id of the host operator that launched the operation.
--   ended      BIGINT [ns]  Start of the gap, when all previous operations on the stream had ended.
--   previous   STRUCT       event_id and name of the operation that ended last before the gap.
--   gap_ns     BIGINT [ns]  Length of the gap.
--   category   VARCHAR      Category of the gap: host_wait, kernel_wait or other.
WITH
    _ops AS (
        SELECT
            g.run, g.rank, g.device, g.stream, g.event_id, g.name, g.ts, g.launch_id, g.launch_ts, g.op_id,
            max(g.ts + g.dur) OVER _earlier AS ended,
            arg_max({'id': g.event_id, 'name': g.name}, g.ts + g.dur) OVER _earlier AS previous
        FROM lib.scoped_gpu_ops(runs, ranks, steps, include_last_profiler_step) AS g
        -- Gaps are computed per stream, so operations without a stream are skipped.
        WHERE g.stream IS NOT NULL
        WINDOW _earlier AS (
            PARTITION BY g.run, g.rank, g.span, g.device, g.stream
            ORDER BY g.ts, g.dur, g.event_id
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        )
    )
SELECT
    o.*,
    o.ts - o.ended AS gap_ns,
    CASE
        WHEN o.launch_ts > o.ended THEN 'host_wait'
        WHEN o.ts - o.ended < kernel_wait_below_ns THEN 'kernel_wait'
        ELSE 'other'
    END AS category
FROM _ops AS o
WHERE o.ts > o.ended
