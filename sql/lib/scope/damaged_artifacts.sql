-- Flight Recorder dumps, memory snapshots and execution traces of which a part is missing.
CREATE OR REPLACE MACRO lib.damaged_artifacts(
    runs
) AS TABLE
-- Columns:
--   run      VARCHAR  Run name.
--   rank     INTEGER  Rank of the process.
--   is_dump  BOOLEAN  Whether the file is a Flight Recorder dump; otherwise, it is a memory snapshot or execution trace.
--   reason   VARCHAR  Kind of file, missing part, and reason.
SELECT q.run, q.rank, starts_with(q.reason, 'Flight Recorder dump: ') AS is_dump, q.reason
FROM quarantine AS q
WHERE lib.is_requested(runs, q.run) AND lib.is_of_artifact(q.reason)
