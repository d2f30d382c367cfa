-- Key figures of each run: step time, utilization, exposed communication, waiting, MFU, memory.
--
-- Shares of communication are relative to the recorded step time of all ranks together, which is summed from
-- step_accounting. Other shares of step time are relative to that of the ranks with a device.
-- Utilization is the share of time in which a kernel runs and does more than wait for other ranks. Peak memory
-- includes the last step. Launch-bound time is device idle time before the host has launched the next operation, for
-- any reason; idle_causes shows the reasons.
--
-- Title: Key figures
-- Shown: step_ns, utilization_pct, idle_pct, wait_pct, unmatched_pct, exposed_communication_pct, compute_pct, mfu_pct, peak_memory_bytes
-- Status: stable
-- Since: 0.1
-- Reference: msprof-analyze overall metrics, TensorBoard profiler plugin overview
-- Needs: nothing; steps need the profiler's schedule, and memory peaks need profile_memory=True
-- Report: first 5; table
CREATE OR REPLACE MACRO kpis_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    -- Profiler steps to include; NULL means every step, or the whole trace if it has no steps.
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false
) AS TABLE
-- Columns:
--   run                        VARCHAR         Run name.
--   rank_count                 BIGINT [count]  Number of ranks.
--   step_count                 BIGINT [count]  Number of distinct steps; NULL for traces without steps.
--   device_name                VARCHAR         Most frequent device model; NULL if not recorded.
--   step_ns                    DOUBLE [ns]     Mean step duration over ranks and steps; for traces without steps, mean duration of the whole trace.
--   utilization_pct            DOUBLE [%]      Share of recorded step time in which a kernel does more than wait for other ranks, as far as its waits are known; NULL without a device.
--   compute_pct                DOUBLE [%]      Share of recorded step time with a computation kernel running; NULL without a device.
--   exposed_communication_pct  DOUBLE [%]      Share of recorded step time in communication (transfer, wait, or unmatched) that is not overlapped by compute.
--   unmatched_pct              DOUBLE [%]      Part of exposed_communication_pct in collectives that are unmatched, or whose end times disagree: transfer or wait, which of the two is unknown.
--   wait_pct                   DOUBLE [%]      Part of exposed_communication_pct spent waiting for other ranks; NULL if no collective is matched across ranks.
--   idle_pct                   DOUBLE [%]      Share of recorded step time with no device activity; NULL without a device.
--   unrecorded_pct             DOUBLE [%]      Share of step time in which the device ran work that is not in the trace; all other shares exclude this time.
--   undecided_pct              DOUBLE [%]      Share of step time that is either idle or unrecorded work; it counts as idle because the trace does not show which.
--   launch_bound_pct           DOUBLE [%]      Part of idle_pct before the host has launched the next operation; NULL if no launch is in the trace.
--   launch_unknown_pct         DOUBLE [%]      Part of idle_pct before an operation whose launch is not in the trace.
--   mfu_pct                    DOUBLE [%]      Model FLOPs utilization as in mfu: time at the peak rate as a share of recorded step time, both summed over the steps of all ranks; NULL if shapes or peaks are unknown.
--   mfu_peak_tflops            DOUBLE [TFLOP/s]  Peak rate that mfu_pct is relative to, the mean over the data types of the products; NULL: unknown.
--   mfu_covered_pct            DOUBLE [%]      Share of computation kernel time that mfu_pct covers.
--   peak_memory_bytes          BIGINT [bytes]  Highest reserved total of a device, or allocated total if higher; NULL without memory events.
--   peak_memory_pct            DOUBLE [%]      Highest share of a device's memory in use; NULL if no trace records the capacity.
SELECT k.*
FROM lib.run_kpis(runs, ranks, steps, include_last_profiler_step) AS k
ORDER BY k.run
