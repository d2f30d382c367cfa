-- Time during which a device ran work that is not in the trace, or may have done so at the start of the recording.
--
-- The rows are computed once for all ranks of a run and materialized next to the tables. If they are not
-- materialized, the query computes them. derived.unrecorded_time documents the rules and their evidence. The time is
-- neither idle nor busy: step_accounting reports it separately.
CREATE OR REPLACE VIEW unrecorded_time AS
-- Columns:
--   run           VARCHAR         Run name: one capture of one job.
--   rank          INTEGER         Rank of the process.
--   span          INTEGER         Recording of the rank.
--   ts            BIGINT [ns]     Start of the interval, relative to the run's first event; no recorded operation runs in the interval.
--   dur           BIGINT [ns]     Length of the interval.
--   kind          VARCHAR         before: launched before the recording; lost: records of launched kernels are missing, or may be, because the file is cut off; after: still running at the end; undecided: idle or earlier work.
--   evidence_id   BIGINT          event_id of the operation that waits for earlier work, or of the first launch without a kernel; NULL if undecided, or from where the file is cut off.
--   launch_count  BIGINT [count]  Number of consecutive launches without a kernel, for kinds lost and after; NULL for the other kinds, and from where the file is cut off.
SELECT x.*
FROM derived.unrecorded_time AS x
