-- Contents of each rank's trace: events by kind, linked device activity, steps and flaws.
--
-- This analysis only counts and measures; see the findings analysis for the consequences of flaws.
--
-- Title: Contents of each trace
-- Shown: rank, event_count, gpu_op_count, linked_pct, step_count, median_step_ns, lost_count, lost_pct, suspect_count, device_skew_ns
-- Status: stable
-- Since: 0.1
-- Reference: capture health, as requested by users of HTA and Kineto
-- Needs: nothing
-- Scope: runs, ranks; flaws of a capture do not belong to a step
-- Report: table
CREATE OR REPLACE MACRO rank_health_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL
) AS TABLE
-- Columns:
--   run                    VARCHAR         Run name.
--   rank                   INTEGER         Rank of the process.
--   rank_source            VARCHAR         Source of the rank number: given, distributedInfo, file name, merged file or order of names.
--   event_count            BIGINT [count]  Number of events in the file.
--   cpu_op_count           BIGINT [count]  Number of host operators.
--   python_call_count      BIGINT [count]  Number of Python frames.
--   memory_event_count     BIGINT [count]  Number of allocator events.
--   gpu_op_count           BIGINT [count]  Number of kernels, copies and memsets.
--   linked_pct             DOUBLE [%]      Share of gpu_op_count whose launch is in the trace; NULL without device activity.
--   communication_count    BIGINT [count]  Number of communication operations in gpu_op_count.
--   with_shapes_pct        DOUBLE [%]      Share of host operators with input shapes; NULL without operators.
--   unmatched_pct          DOUBLE [%]      Share of the total duration of device operations in those with the default class, because no metadata, category or rule determines their class; NULL without GPU time.
--   step_count             BIGINT [count]  Number of profiler steps.
--   median_step_ns         BIGINT [ns]     Median step duration.
--   lost_count             BIGINT [count]  Number of unreadable spans in the file.
--   lost_bytes             BIGINT [bytes]  Size of these spans, an estimate if a compressed file is damaged; NULL if the file is cut off, so that it is unknown.
--   lost_event_count       BIGINT [count]  Number of events that these spans would have at the density of the rest; NULL if unknown.
--   lost_pct               DOUBLE [%]      lost_bytes as a share of the file; NULL if unknown.
--   repaired_count         BIGINT [count]  Number of repaired events.
--   odd_argument_count     BIGINT [count]  Number of argument values that do not fit the type of their column and are therefore stored as NULL.
--   suspect_count          BIGINT [count]  Device operations with an impossible duration.
--   suspect_ns             BIGINT [ns]     Total recorded duration of the operations in suspect_count, which all analyses exclude.
--   offset_ns              BIGINT [ns]     Start of the rank, relative to the run's first event.
--   device_skew_ns         BIGINT [ns]     Lead of the device clock over the host clock, estimated from launches and synchronizations; negative if the device clock is behind. Of several devices, the one furthest off; NULL if unknown.
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
    h.lost_bytes,
    h.lost_event_count,
    h.lost_pct,
    h.repaired_count,
    h.odd_argument_count,
    h.suspect_count,
    h.suspect_ns,
    h.offset_ns,
    h.device_skew_ns
FROM lib.rank_health(runs, ranks) AS h
ORDER BY h.run, h.rank
