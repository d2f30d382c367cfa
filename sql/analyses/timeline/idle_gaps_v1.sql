-- Every idle gap of each device stream, longest first: length, category, adjacent operations, and the launch that ended
-- the gap.
--
-- host_wait: the host launched the next operation only after all previous operations had ended. kernel_wait: a gap
-- below the threshold between operations that were both queued. other: a longer gap, for instance because the
-- operation waits for a different stream.
--
-- Title: Every idle gap
-- Shown: rank, stream, dur, category, next_name, op_name, ts, previous_name
-- Status: stable
-- Since: 0.1
-- Reference: HTA get_idle_time_breakdown, gap by gap
-- Needs: GPU activity
CREATE OR REPLACE MACRO idle_gaps_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false,
    -- Upper limit of a kernel_wait gap, exclusive [ns]. HTA's default is 30 us, although its documentation says ns.
    kernel_wait_below_ns BIGINT := 30000
) AS TABLE
-- Columns:
--   run            VARCHAR      Run name.
--   rank           INTEGER      Rank of the process.
--   device         BIGINT       Device number.
--   stream         BIGINT       Device stream.
--   ts             BIGINT [ns]  Start of the gap, relative to the run's first event.
--   dur            BIGINT [ns]  Length of the gap.
--   category       VARCHAR      Category of the gap: host_wait, kernel_wait or other.
--   previous_id    BIGINT       event_id of the operation that ended last before the gap.
--   previous_name  VARCHAR      Name of the previous operation.
--   next_id        BIGINT       event_id of the operation that ends the gap.
--   next_name      VARCHAR      Name of the next operation.
--   launch_id      BIGINT       event_id of the call that launched the next operation; NULL if not in the trace.
--   launch_ts      BIGINT [ns]  Start of the launching call.
--   op_id          BIGINT       event_id of the host operator that launched the next operation.
--   op_name        VARCHAR      Name of the launching operator.
SELECT
    i.run,
    i.rank,
    i.device,
    i.stream,
    i.ended AS ts,
    i.gap_ns AS dur,
    i.category,
    i.previous.id AS previous_id,
    i.previous.name AS previous_name,
    i.event_id AS next_id,
    i.name AS next_name,
    i.launch_id,
    i.launch_ts,
    i.op_id,
    c.name AS op_name
FROM lib.idle_gaps(runs, ranks, steps, include_last_profiler_step, kernel_wait_below_ns) AS i
LEFT JOIN cpu_ops AS c ON c.run = i.run AND c.rank = i.rank AND c.event_id = i.op_id
ORDER BY i.run, dur DESC, i.rank, i.device, i.stream, ts
