-- Predicted time of the capture and of a step without the straggler, with balanced work, with links at their peers'
-- speed, with instant transfers, without exposed communication, with perfect overlap, and with uniform operations.
--
-- All ranks are replayed according to the dependencies of their operations: the order of the host's launches, calls in
-- which the host waits for the device, the order within each stream, and collectives, in which ranks wait for each
-- other. Without a change, the replay reproduces the recorded times. Each scenario changes one thing:
--
-- - no late rank: on ranks that `stragglers` reports as straggler or intermittent (if there are none, as suspected),
--   operations and host work take the median time of the same work on the other ranks of the stage.
-- - balanced: all work takes its mean time over the ranks of a stage.
-- - no transfer: data arrives at once, but ranks still wait for each other.
-- - link at peers' speed: transfers of slow channels take as long as transfers of the same size on other channels.
-- - no exposed communication: ranks neither transfer data nor wait for each other.
-- - perfect overlap: transfers keep their recorded duration, but overlap completely with the other work of their rank.
-- - uniform: each operation takes the mean duration of all operations with its name over ranks and steps, and each
--   transfer takes the median duration. recorded_ns / replayed_ns is the slowdown S of "Understanding stragglers in
--   large model training using what-if analysis"; `slowdown_parts` shows the slowdown by part.
--
-- Waits between streams are inferred, and so are waits of the host if no waiting calls are recorded. If no wait of a
-- launching thread for its device is recorded, launches stay as early as recorded, and savings are lower bounds. The
-- confidence interval of a saving is that of its mean over the steps.
--
-- Title: Step time under other conditions
-- Shown: scenario, step_ns, replayed_step_ns, saved_pct, bound, changed_ranks, reason
-- Status: stable
-- Since: 0.1
-- Scope: runs; all ranks of a run take part
-- Reference: ByteDance-Seed/StragglerAnalysis; simulations of one rank in msprof-analyze and Holistic Trace Analysis
-- Needs: GPU activity of two ranks that communicate
-- Report: first 3
CREATE OR REPLACE MACRO what_if_v1(
    runs VARCHAR[] := NULL
) AS TABLE
-- Columns:
--   run               VARCHAR         Run name.
--   scenario          VARCHAR         as recorded, no late rank, balanced, link at peers' speed, no transfer, no exposed communication, perfect overlap, uniform.
--   step_ns           BIGINT [ns]     Mean host step time over the ranks, as recorded.
--   replayed_step_ns  BIGINT [ns]     Predicted step time, shortened by the same share as the run.
--   saved_pct         DOUBLE [%]      Share of recorded_ns that would be saved.
--   saved_low_pct     DOUBLE [%]      Lower end of the saving's 95 % interval over the steps, as a share of recorded_ns; NULL for fewer than two steps.
--   saved_high_pct    DOUBLE [%]      Upper end of the saving's 95 % interval, as a share of recorded_ns.
--   bound             VARCHAR         upper: an upper bound of the saving; lower: a lower bound, because the trace lacks events or ranks, data sizes differ, or no host wait is recorded; estimate: neither; NULL: no saving.
--   recorded_ns       BIGINT [ns]     Time from the start of the first step to the end of the last device operation, summed over all recordings.
--   replayed_ns       BIGINT [ns]     Total length of the recordings in this scenario.
--   saved_ns          BIGINT [ns]     Predicted saving.
--   changed_ranks     VARCHAR         Ranks that the scenario changes, as JSON; NULL for all.
--   rank_count        BIGINT [count]  Number of ranks that take part.
--   collective_count  BIGINT [count]  Number of collectives that the ranks share.
--   reason_code       VARCHAR         Code of the reason in the table messages.
--   reason            VARCHAR         Why there is no prediction, why the saving, even a saving of 0, is only a lower bound, or why missing ranks make it too large.
SELECT
    t.run, t.scenario, t.step_ns, t.replayed_step_ns, t.saved_pct, t.saved_low_pct, t.saved_high_pct, t.bound, t.recorded_ns,
    t.replayed_ns, t.recorded_ns - t.replayed_ns AS saved_ns, t.changed_ranks, t.rank_count, t.collective_count, t.reason_code,
    m.message AS reason
FROM lib.replayed_scenarios(runs) AS t
LEFT JOIN messages AS m ON m.code = t.reason_code
ORDER BY t.run, t.position
