-- Stacks in memory snapshots, one row per frame.
CREATE OR REPLACE VIEW snapshot_frames AS
-- Columns:
--   run       VARCHAR          Run: one capture of one job.
--   rank      INTEGER          Rank of the process that wrote the snapshot.
--   stack_id  BIGINT           Number of the stack in the snapshot.
--   depth     INTEGER [count]  Number of frames below this one; 0 is the innermost call.
--   name      VARCHAR          Function.
--   file      VARCHAR          Source file.
--   line      BIGINT [1]       Line number in that file.
SELECT x.* EXCLUDE (span)
FROM stored.snapshot_frames AS x
