-- Total step time of each rank, and the parts that sum to it; each part is an upper bound on the time that can be
-- saved in it. Shares of a rank's time are shares of recorded_ns.
CREATE OR REPLACE MACRO lib.step_sums(
    runs,
    ranks,
    -- Profiler steps to include; NULL means every step.
    steps,
    include_last_profiler_step
) AS TABLE
-- Columns:
--   run          VARCHAR         Run name.
--   rank         INTEGER         Rank of the process.
--   step_count   BIGINT [count]  Number of steps; 1 for a trace without steps.
--   has_steps    BOOLEAN         Whether the trace has steps.
--   step_ns      BIGINT [ns]     Total step time.
--   compute_ns   BIGINT [ns]     Time with a computation kernel running.
--   transfer_ns  BIGINT [ns]     Time in collectives after all ranks arrived, not overlapped by compute.
--   unmatched_ns  BIGINT [ns]    Time in collectives that are unmatched, or whose end times disagree, not overlapped by compute or transfer: transfer or wait, which of the two is unknown.
--   wait_ns      BIGINT [ns]     Time in collectives waiting for another rank, not overlapped by compute or transfer.
--   memory_ns    BIGINT [ns]     Time in copies and memsets, not overlapped by compute or communication.
--   unrecorded_ns  BIGINT [ns]   Time during which the device ran work that is not in the trace.
--   recorded_ns  BIGINT [ns]     step_ns minus unrecorded_ns; NULL if it is 0.
--   idle_ns      BIGINT [ns]     Time with no activity on the device.
SELECT
    p.run, p.rank, count(*) AS step_count, bool_or(p.step IS NOT NULL) AS has_steps,
    sum(p.step_ns)::BIGINT AS step_ns,
    sum(p.compute_ns)::BIGINT AS compute_ns,
    sum(p.exposed_transfer_ns)::BIGINT AS transfer_ns,
    sum(p.exposed_unmatched_ns)::BIGINT AS unmatched_ns,
    sum(p.exposed_wait_ns)::BIGINT AS wait_ns,
    sum(p.exposed_memory_ns)::BIGINT AS memory_ns,
    sum(p.step_ns - p.recorded_ns)::BIGINT AS unrecorded_ns,
    nullif(sum(p.recorded_ns), 0)::BIGINT AS recorded_ns,
    sum(p.idle_before_ns + p.idle_between_ns + p.idle_after_ns)::BIGINT AS idle_ns
FROM lib.scoped_steps(runs, ranks, steps, include_last_profiler_step) AS p
GROUP BY p.run, p.rank
