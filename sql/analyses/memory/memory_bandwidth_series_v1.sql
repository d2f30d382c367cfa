-- Bandwidth of copies and memsets over time, by kind: one row per change.
--
-- The bandwidth is the sum over concurrent copies on all streams of a device, in whole bytes per second. The bandwidth
-- is therefore exactly 0 while no copy runs (HTA adds doubles, Q35). The bandwidth recorded by some profilers is off
-- by a constant factor; computed_gbps is bytes / duration for comparison. Memory traffic of kernels is not included.
--
-- Title: Copy bandwidth over time
-- Shown: rank, name, ts, dur, bandwidth_gbps, running_count
-- Status: stable
-- Since: 0.1
-- Reference: HTA get_memory_bw_time_series
-- Needs: GPU activity
-- Report: chart; at most 8 ranks
-- Chart:
--   mark = "line"
--   title = "Bandwidth of each kind of copy"
--   bar = ["rank", "device", "name"]
--   value = "bandwidth_gbps or computed_gbps"
--   measure = "GB/s"
--   color = "memory"
CREATE OR REPLACE MACRO memory_bandwidth_series_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false,
    -- Duration assumed for copies recorded with duration 0, as in traces with whole microseconds [ns]; 0 excludes
    -- them. HTA assumes 1 us.
    zero_duration_as_ns BIGINT := 1000
) AS TABLE
-- Columns:
--   run             VARCHAR         Run name.
--   rank            INTEGER         Rank of the process.
--   device          BIGINT          Device number.
--   name            VARCHAR         Kind of copy: Memcpy DtoH, Memcpy HtoD, Memcpy DtoD, ..., Memset or Memcpy Unknown.
--   ts              BIGINT [ns]     Time of the change, relative to the run's first event.
--   dur             BIGINT [ns]     Time to the next change; NULL after the last change.
--   bandwidth_gbps  DOUBLE [GB/s]   Sum of the recorded bandwidth after the change; 0 if nothing runs, NULL if not recorded.
--   computed_gbps   DOUBLE [GB/s]   Sum of bytes / duration after the change; 0 if nothing runs, NULL if bytes are not recorded.
--   running_count   BIGINT [count]  Number of copies running after the change.
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
