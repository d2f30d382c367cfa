-- One row for each run, of what people quote: step time, utilization, exposed communication, waiting, memory.
--
-- Shares are of the time in steps of all ranks together, as in step_accounting, of which they are sums. Utilization
-- is the time in which a kernel runs and does more than to wait for other ranks. Memory is that of the last step too. Launch-bound is what devices idle because the host has not launched what
-- comes next, for whatever reason: idle_causes tells which.
--
-- Title: Key figures
-- Status: stable
-- Since: 0.1
-- Reference: msprof-analyze overall metrics, TensorBoard profiler plugin overview
-- Needs: nothing; steps need the profiler's schedule, memory peaks profile_memory=True
-- Report: first 5; table
CREATE OR REPLACE MACRO kpis_v1(
    -- Runs to include; NULL means every run.
    runs VARCHAR[] := NULL,
    -- Ranks to include; NULL means every rank.
    ranks INTEGER[] := NULL,
    -- Profiler steps to include; NULL means every step and the whole of traces without steps.
    steps BIGINT[] := NULL,
    -- Whether to include the last profiler step of a run with two or more.
    include_last_profiler_step BOOLEAN := false
) AS TABLE
-- Columns:
--   run                        VARCHAR         Run name.
--   rank_count                 BIGINT [count]  Ranks.
--   step_count                 BIGINT [count]  Different steps; NULL for traces without steps.
--   device_name                VARCHAR         Model of most devices; NULL where no trace says so.
--   step_ns                    DOUBLE [ns]     Mean duration of a step, over ranks and steps; of a whole trace without steps.
--   utilization_pct            DOUBLE [%]      Share of recorded step time in which a kernel runs and does not only wait for other ranks; NULL without a device, likewise the idle shares.
--   compute_pct                DOUBLE [%]      Share of recorded step time in which a computation kernel runs; likewise.
--   exposed_communication_pct  DOUBLE [%]      Share of recorded step time in which communication runs or waits, and no computation.
--   wait_pct                   DOUBLE [%]      Part of that: waiting for other ranks; NULL where no match tells it from transferring.
--   idle_pct                   DOUBLE [%]      Share of recorded step time in which nothing runs on the device.
--   unrecorded_pct             DOUBLE [%]      The device ran work that the trace does not hold, as a share of the steps; all other shares leave this time out.
--   undecided_pct              DOUBLE [%]      Part of the steps that may be idle or such work: it counts as idle, and no evidence decides.
--   launch_bound_pct           DOUBLE [%]      Part of idle_pct: the host has not launched what comes next; NULL where no launch tells.
--   launch_unknown_pct         DOUBLE [%]      Part of idle_pct: what comes next has no launch in the trace.
--   mfu_pct                    DOUBLE [%]      Model FLOPs utilization, as in mfu: time at the peak as a share of recorded step time, mean of the steps of all ranks; NULL where shapes or peaks are not known.
--   mfu_covered_pct            DOUBLE [%]      Share of the time of computation kernels for which that holds.
--   peak_memory_bytes          BIGINT [bytes]  Highest reserved total of a device, allocated where that is higher; NULL without memory events.
--   peak_memory_pct            DOUBLE [%]      The highest share of a device's memory; NULL where no trace says how much there is.
SELECT k.*
FROM lib.run_kpis(runs, ranks, steps, include_last_profiler_step) AS k
ORDER BY k.run
