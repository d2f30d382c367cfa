-- Bandwidth of copies and memsets over time, by kind: a row where it changes.
--
-- The sum over the copies that run at once, on all streams of a device. Added up in whole bytes per
-- second, so that it is exactly 0 where nothing runs (HTA adds doubles, Q35). The recorded bandwidth
-- of some profilers is off by a constant factor, so bytes / duration stands beside it. What
-- kernels read and write is not part of it.
--
-- Title: Copy bandwidth over time
-- Status: stable
-- Since: 0.1
-- Reference: HTA get_memory_bw_time_series
-- Needs: GPU activity
-- Report: chart; at most 8 ranks
CREATE OR REPLACE MACRO memory_bandwidth_series_v1(
    -- Runs to include; NULL means every run.
    runs VARCHAR[] := NULL,
    -- Ranks to include; NULL means every rank.
    ranks INTEGER[] := NULL,
    -- Profiler steps to include; NULL means every step and all activity outside steps.
    steps BIGINT[] := NULL,
    -- Whether to include the last profiler step of a run with two or more.
    include_last_profiler_step BOOLEAN := false,
    -- Duration of a copy that was recorded with none, as traces of whole microseconds do [ns]; 0 leaves it out. HTA takes 1 us.
    zero_duration_as_ns BIGINT := 1000
) AS TABLE
-- Columns:
--   run             VARCHAR         Run name.
--   rank            INTEGER         Rank of the process.
--   device          BIGINT          Device number.
--   name            VARCHAR         Kind: Memcpy DtoH, Memcpy HtoD, Memcpy DtoD, ..., Memset or Memcpy Unknown.
--   ts              BIGINT [ns]     When it changes, since the run's first event.
--   dur             BIGINT [ns]     Time to the next change; NULL after the last change.
--   bandwidth_gbps  DOUBLE [GB/s]   Sum of the recorded bandwidth from then on; 0 where nothing runs, NULL where none is recorded.
--   computed_gbps   DOUBLE [GB/s]   Sum of bytes / duration from then on; likewise.
--   running_count   BIGINT [count]  Copies running from then on.
SELECT
    b.run,
    b.rank,
    b.device,
    b.name,
    b.ts,
    b.dur,
    b.recorded_rate / 1e9 AS bandwidth_gbps,
    b.computed_rate / 1e9 AS computed_gbps,
    b.running_count
FROM lib.copy_bandwidth(runs, ranks, steps, include_last_profiler_step, zero_duration_as_ns) AS b
ORDER BY b.run, b.rank, b.device, b.name, b.ts
