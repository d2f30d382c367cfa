-- Breakdown of each host step into compute, exposed communication, exposed copies, unrecorded and idle time.
--
-- The eleven parts sum exactly to the step. Steps are host steps, so time before the first device activity of a step
-- counts as idle. Concurrent activity counts once, toward the first that applies: computation, transfer, unmatched
-- communication, wait, copies.
-- Matching collectives across ranks separates waiting for other ranks from transferring. If a collective has no match,
-- or its end times disagree between ranks, it is unknown how long it waits, and its time is exposed_unmatched_ns. A trace
-- without steps counts as one step, from the start of its first event until its last event ends.
--
-- Unrecorded time is neither idle nor compute. During this time, the device runs work that was launched before the
-- recording, work whose records were lost, or work that had not ended when the recording stopped (`unrecorded_time`).
-- At the start of a recording, idle time and earlier work may be indistinguishable. Such undecided time is part of
-- idle_before_ns, and undecided_ns is its length. unrecorded_before_ns is the time known to be earlier work; it is
-- NULL if only undecided time is left. Steps overlap if the profiler opens a step before it closes the previous one.
--
-- On a rank without device activity, compute, copies and idle time are unknown and NULL: see `host_accounting`. Its
-- exposed communication is that of gloo on the host.
--
-- Title: Where a step goes
-- Shown: rank, step, step_ns, recorded_ns, compute_pct, transfer_pct, wait_pct, idle_pct, unmatched_pct, compute_ns, exposed_transfer_ns, exposed_unmatched_ns, exposed_wait_ns, idle_between_ns, exposed_memory_ns, idle_before_ns, idle_after_ns
-- Also: step
-- Status: stable
-- Since: 0.1
-- Reference: TraceLens gpu_timeline, with the host step and separate wait time
-- Needs: nothing; steps need the profiler's schedule
-- Report: first 1; without compute_ns: No device activity was recorded. What the host does in a step is in host_accounting.
-- Chart:
--   mark = "stack"
--   title = "Where a step goes"
--   notes = [
--     "Mean of the host's steps of each rank. Transfers, waits for other ranks and copies count only if not overlapped by",
--     "computation. Transfer or wait: not matched with other ranks, so it is unknown which. Idle: before the first GPU",
--     "operation, between operations, after the last. Unrecorded: the GPU ran work that is not in the trace; this time is",
--     "neither idle nor compute.",
--   ]
--   mean = "step"
--   legend = "Part"
--   whole = "the step"
--   parts.compute_ns = ["compute", "computation"]
--   parts.exposed_transfer_ns = ["transfer", "communication"]
--   parts.exposed_unmatched_ns = ["transfer or wait", "unmatched"]
--   parts.exposed_wait_ns = "wait"
--   parts.exposed_memory_ns = ["copies", "memory"]
--   parts.unrecorded_before_ns = ["earlier work, unrecorded", "unrecorded"]
--   parts.unrecorded_lost_ns = ["lost records", "#B39DD3"]
--   parts.unrecorded_after_ns = ["unrecorded at the end", "#DCD0EC"]
--   parts.idle_before_ns = ["idle before", "#8C96A0"]
--   parts.idle_between_ns = ["idle between", "idle"]
--   parts.idle_after_ns = ["idle after", "#DDE2E6"]
CREATE OR REPLACE MACRO step_accounting_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    -- Profiler steps to include; NULL means every step.
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false
) AS TABLE
-- Columns:
--   run                   VARCHAR      Run name.
--   rank                  INTEGER      Rank of the process.
--   step                  BIGINT       Profiler step; NULL if the trace has no steps and the row covers all of it.
--   step_ns               BIGINT [ns]  Duration of the step on the host: the sum of the eleven parts, with NULL as 0.
--   compute_ns            BIGINT [ns]  Time with a computation kernel running; NULL without device activity, as the other parts on the device.
--   exposed_transfer_ns   BIGINT [ns]  Time in collectives after all ranks arrived, not overlapped by compute.
--   exposed_unmatched_ns  BIGINT [ns]  Time in collectives that are unmatched, or whose end times disagree, not overlapped by compute or transfer: transfer or wait, which of the two is unknown.
--   exposed_wait_ns       BIGINT [ns]  Exposed wait: time in matched collectives before the last rank arrives, clipped to the step, not overlapped by compute or transfer.
--   exposed_memory_ns     BIGINT [ns]  Time in copies and memsets, not overlapped by compute or communication.
--   unrecorded_before_ns  BIGINT [ns]  Unrecorded time: the device ran work launched before the recording; NULL if none is known and some time is undecided.
--   unrecorded_lost_ns    BIGINT [ns]  Unrecorded time: records of launched kernels are missing, or may be, because the file is cut off.
--   unrecorded_after_ns   BIGINT [ns]  Unrecorded time: launched work was still running when the recording ended.
--   idle_before_ns        BIGINT [ns]  Idle time before the first device activity of the step; an upper bound if unrecorded_before_ns is NULL.
--   idle_between_ns       BIGINT [ns]  Idle time between the first and last device activity of the step.
--   idle_after_ns         BIGINT [ns]  Idle time after the last device activity of the step.
--   undecided_ns          BIGINT [ns]  Part of idle_before_ns that is either idle or earlier work; the trace does not show which.
--   recorded_ns           BIGINT [ns]  step_ns minus the three unrecorded parts; the denominator of the shares.
--   idle_pct              DOUBLE [%]   The three idle parts as a share of recorded_ns; NULL if recorded_ns is 0, or without device activity.
--   compute_pct           DOUBLE [%]   compute_ns as a share of recorded_ns; NULL if recorded_ns is 0, or without device activity.
--   transfer_pct          DOUBLE [%]   exposed_transfer_ns as a share of recorded_ns; NULL if recorded_ns is 0.
--   unmatched_pct         DOUBLE [%]   exposed_unmatched_ns as a share of recorded_ns; NULL if recorded_ns is 0.
--   wait_pct              DOUBLE [%]   exposed_wait_ns as a share of recorded_ns; NULL if recorded_ns is 0.
WITH
    known AS (
        SELECT p.*, d.rank IS NOT NULL AS has_device
        FROM lib.scoped_steps(runs, ranks, steps, include_last_profiler_step) AS p
        LEFT JOIN lib.device_ranks(runs, ranks) AS d ON d.run = p.run AND d.rank = p.rank
    )
SELECT
    p.run,
    p.rank,
    p.step,
    p.step_ns,
    CASE WHEN p.has_device THEN p.compute_ns END AS compute_ns,
    p.exposed_transfer_ns,
    p.exposed_unmatched_ns,
    p.exposed_wait_ns,
    CASE WHEN p.has_device THEN p.exposed_memory_ns END AS exposed_memory_ns,
    CASE WHEN p.undecided_ns = 0 OR p.unrecorded_before_ns > 0 THEN p.unrecorded_before_ns END AS unrecorded_before_ns,
    p.unrecorded_lost_ns,
    p.unrecorded_after_ns,
    CASE WHEN p.has_device THEN p.idle_before_ns END AS idle_before_ns,
    CASE WHEN p.has_device THEN p.idle_between_ns END AS idle_between_ns,
    CASE WHEN p.has_device THEN p.idle_after_ns END AS idle_after_ns,
    CASE WHEN p.has_device THEN p.undecided_ns END AS undecided_ns,
    p.recorded_ns,
    CASE WHEN p.has_device THEN 100 * ((p.idle_before_ns + p.idle_between_ns + p.idle_after_ns) / nullif(p.recorded_ns, 0)) END AS idle_pct,
    CASE WHEN p.has_device THEN 100 * (p.compute_ns / nullif(p.recorded_ns, 0)) END AS compute_pct,
    100 * (p.exposed_transfer_ns / nullif(p.recorded_ns, 0)) AS transfer_pct,
    100 * (p.exposed_unmatched_ns / nullif(p.recorded_ns, 0)) AS unmatched_pct,
    100 * (p.exposed_wait_ns / nullif(p.recorded_ns, 0)) AS wait_pct
FROM known AS p
ORDER BY p.run, p.rank, p.step
