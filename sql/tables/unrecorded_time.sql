-- Time in which a device ran work that the trace does not hold, and time at the start in which that cannot be decided.
--
-- Computed once for all ranks of a run and stored next to the tables; what is not stored is computed by the query. The
-- rules and their evidence: derived.unrecorded_time. Neither idle nor busy, this time is a part of its own in
-- step_accounting.
CREATE OR REPLACE VIEW unrecorded_time AS
-- Columns:
--   run           VARCHAR         Run: one capture of one job.
--   rank          INTEGER         Rank of the process.
--   span          INTEGER         Recording of the rank.
--   ts            BIGINT [ns]     Start since the run's first event. No recorded operation runs from here to the end.
--   dur           BIGINT [ns]     Length.
--   kind          VARCHAR         before: launched before the recording; lost: records of launched kernels are missing; after: still running at the end; undecided: idle or earlier work.
--   evidence_id   BIGINT          event_id of the operation that waits for earlier work, or of the first launch without a kernel; NULL if undecided.
--   launch_count  BIGINT [count]  Launches in a row without a kernel; NULL for others.
SELECT x.*
FROM derived.unrecorded_time AS x
