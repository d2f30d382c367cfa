-- What each rank's trace holds: events by kind, linked device activity, steps, flaws.
--
-- Counts only; what they mean for your analyses is said by findings.
--
-- Title: Contents of each trace
-- Status: stable
-- Since: 0.1
-- Reference: capture health, as users of HTA and Kineto ask for it
-- Needs: nothing
-- Scope: runs, ranks; what is wrong with a capture is not a matter of one step
-- Report: table
CREATE OR REPLACE MACRO rank_health_v1(
    -- Runs to include; NULL means every run.
    runs VARCHAR[] := NULL,
    -- Ranks to include; NULL means every rank.
    ranks INTEGER[] := NULL
) AS TABLE
-- Columns:
--   run                    VARCHAR         Run name.
--   rank                   INTEGER         Rank of the process.
--   rank_source            VARCHAR         What told the rank: given, distributedInfo, file name or order of names.
--   event_count            BIGINT [count]  Events in the file.
--   cpu_op_count           BIGINT [count]  Host operators.
--   python_call_count      BIGINT [count]  Python frames.
--   memory_event_count     BIGINT [count]  Allocator events.
--   gpu_op_count           BIGINT [count]  Kernels, copies and memsets.
--   linked_pct             DOUBLE [%]      Share of them whose launch is in the trace; NULL without any.
--   communication_count    BIGINT [count]  Communication among them.
--   with_shapes_pct        DOUBLE [%]      Share of host operators with input shapes; NULL without any.
--   unmatched_pct          DOUBLE [%]      Share of GPU time whose class no metadata, category or rule decided; NULL without any.
--   step_count             BIGINT [count]  Profiler steps.
--   median_step_ns         BIGINT [ns]     Median length of a step.
--   lost_count             BIGINT [count]  Spans of the file that could not be read.
--   repaired_count         BIGINT [count]  Events that had to be repaired.
--   odd_argument_count     BIGINT [count]  Argument values that are not of the form of their column, which is NULL.
--   suspect_count          BIGINT [count]  Device activity whose duration cannot be true.
--   suspect_ns             BIGINT [ns]     Its recorded duration, left out of all analyses.
--   offset_ns              BIGINT [ns]     Start of this rank since the run's first event.
--   device_skew_ns         BIGINT [ns]     Its device's clock is ahead of the host's by this, as launches and synchronizations tell; of several devices the largest; NULL: unknown.
SELECT
    h.run,
    h.rank,
    h.rank_source,
    h.event_count,
    h.cpu_op_count,
    h.python_call_count,
    h.memory_event_count,
    h.gpu_op_count,
    100 * (h.gpu_op_count - h.unlinked_gpu_op_count) / nullif(h.gpu_op_count, 0) AS linked_pct,
    h.communication_count,
    100 * h.cpu_op_with_shapes_count / nullif(h.cpu_op_count, 0) AS with_shapes_pct,
    100::DOUBLE * h.unmatched_ns / nullif(h.gpu_ns, 0) AS unmatched_pct,
    h.step_count,
    h.median_step_ns,
    h.lost_count,
    h.repaired_count,
    h.odd_argument_count,
    h.suspect_count,
    h.suspect_ns,
    h.offset_ns,
    h.device_skew_ns
FROM lib.rank_health(runs, ranks) AS h
ORDER BY h.run, h.rank
