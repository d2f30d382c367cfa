-- Operations that wait in each device stream's queue over time: a row where their number changes.
--
-- A launch puts its operations into the queue when the call starts, whatever its name and vendor; a
-- graph launch puts in all of the graph. An operation leaves it when it starts on the device. What
-- happens in one nanosecond is one row, and none where the number stays as it was. An operation that
-- starts before its launch, because clocks disagree, has not waited; one whose launch is not in the
-- trace is not counted.
--
-- Title: Launch queue length over time
-- Status: stable
-- Since: 0.1
-- Reference: HTA get_queue_length_time_series
-- Needs: GPU activity and runtime calls
-- Report: chart; at most 8 ranks
CREATE OR REPLACE MACRO queue_length_series_v1(
    -- Runs to include; NULL means every run.
    runs VARCHAR[] := NULL,
    -- Ranks to include; NULL means every rank.
    ranks INTEGER[] := NULL,
    -- Profiler steps to include; NULL means every step and what lies outside of steps.
    steps BIGINT[] := NULL,
    -- Whether to include the last profiler step of a run with two or more.
    include_last_profiler_step BOOLEAN := false
) AS TABLE
-- Columns:
--   run           VARCHAR      Run name.
--   rank          INTEGER      Rank of the process.
--   device        BIGINT       Device number.
--   stream        BIGINT       Device stream.
--   ts            BIGINT [ns]  When the number changes, since the run's first event.
--   dur           BIGINT [ns]  Time to the next change; NULL behind the last one.
--   queue_length  BIGINT [1]   Operations waiting from then on.
--   event_id      BIGINT       event_id of the launch that made it longer, or of the op whose start made it shorter.
SELECT q.run, q.rank, q.device, q.stream, q.ts, q.dur, q.queue_length, q.event_id
FROM lib.queue_length(runs, ranks, steps, include_last_profiler_step) AS q
ORDER BY q.run, q.rank, q.device, q.stream, q.ts
