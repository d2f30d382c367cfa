-- Where each step of the host goes: compute, exposed transfer, exposed wait, exposed copies, work that the trace does
-- not hold, and idle before, between and after the device's work. The parts sum to the step exactly.
--
-- The step is the host's, so that a device that has nothing to do for the first half of it shows that.
-- What runs at once counts in this order: computation, transfer, wait, copies. Waiting for other ranks is
-- told from transferring by matching collectives across ranks; in a collective without a match, or whose end times
-- disagree between ranks, it is not known, and all of it counts as transfer (exposed_unmatched_ns says how much). A trace without steps is
-- one step, from its first event to its last end. Unrecorded time is neither idle nor compute: the device runs
-- work launched before the recording, work whose records were lost, or work that had not ended when the recording
-- did (`unrecorded_time`). At the start of a recording it may not be possible to decide between idle and earlier
-- work: that time is part of idle_before_ns, undecided_ns says how much, and unrecorded_before_ns is what is known
-- to be earlier work, NULL if that is nothing. Steps overlap where the profiler opens the next before it closes one.
--
-- Title: Where a step goes
-- Status: stable
-- Since: 0.1
-- Reference: TraceLens gpu_timeline, from the host's step and with waiting told apart
-- Needs: nothing; steps need the profiler's schedule
-- Report: first 1
CREATE OR REPLACE MACRO step_accounting_v1(
    -- Runs to include; NULL means every run.
    runs VARCHAR[] := NULL,
    -- Ranks to include; NULL means every rank.
    ranks INTEGER[] := NULL,
    -- Profiler steps to include; NULL means every step.
    steps BIGINT[] := NULL,
    -- Whether to include the last profiler step of a run with two or more.
    include_last_profiler_step BOOLEAN := false
) AS TABLE
-- Columns:
--   run                   VARCHAR      Run name.
--   rank                  INTEGER      Rank of the process.
--   step                  BIGINT       Profiler step; NULL for the whole of a trace without steps.
--   step_ns               BIGINT [ns]  Duration of the step on the host: the sum of the ten parts, of which NULL counts as 0.
--   compute_ns            BIGINT [ns]  A computation kernel runs.
--   exposed_transfer_ns   BIGINT [ns]  No computation, but a collective that all ranks have come to, or one without a match.
--   exposed_wait_ns       BIGINT [ns]  Neither, but a collective that waits for another rank.
--   exposed_memory_ns     BIGINT [ns]  None of these, but a copy or memset.
--   unrecorded_before_ns  BIGINT [ns]  Nothing recorded: the device ran work launched before the recording; NULL if none is known and some time is undecided.
--   unrecorded_lost_ns    BIGINT [ns]  Nothing recorded: records of launched kernels are missing.
--   unrecorded_after_ns   BIGINT [ns]  Nothing recorded: launched work still ran when the recording ended.
--   idle_before_ns        BIGINT [ns]  Nothing, before the first device activity of the step; at most, if unrecorded_before_ns is NULL.
--   idle_between_ns       BIGINT [ns]  Nothing, between the first and the last.
--   idle_after_ns         BIGINT [ns]  Nothing, after the last.
--   exposed_unmatched_ns  BIGINT [ns]  Part of exposed_transfer_ns: collectives in which waiting is not known.
--   undecided_ns          BIGINT [ns]  Part of idle_before_ns: idle or earlier work, no evidence decides.
--   recorded_ns           BIGINT [ns]  The step without the three unrecorded parts: the denominator of the shares.
--   idle_pct              DOUBLE [%]   The three idle parts as a share of recorded_ns; NULL if that is 0.
--   compute_pct           DOUBLE [%]   Computation as a share of recorded_ns; NULL if that is 0.
SELECT
    p.run,
    p.rank,
    p.step,
    p.step_ns,
    p.compute_ns,
    p.exposed_transfer_ns,
    p.exposed_wait_ns,
    p.exposed_memory_ns,
    CASE WHEN p.undecided_ns = 0 OR p.unrecorded_before_ns > 0 THEN p.unrecorded_before_ns END AS unrecorded_before_ns,
    p.unrecorded_lost_ns,
    p.unrecorded_after_ns,
    p.idle_before_ns,
    p.idle_between_ns,
    p.idle_after_ns,
    p.exposed_unmatched_ns,
    p.undecided_ns,
    p.recorded_ns,
    100 * ((p.idle_before_ns + p.idle_between_ns + p.idle_after_ns) / nullif(p.recorded_ns, 0)) AS idle_pct,
    100 * (p.compute_ns / nullif(p.recorded_ns, 0)) AS compute_pct
FROM lib.scoped_steps(runs, ranks, steps, include_last_profiler_step) AS p
ORDER BY p.run, p.rank, p.step
