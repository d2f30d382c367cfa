-- Starts and ends of annotations in memory snapshots.
CREATE OR REPLACE VIEW snapshot_annotations AS
-- Columns:
--   run            VARCHAR          Run: one capture of one job.
--   rank           INTEGER          Rank of the process that wrote the snapshot.
--   annotation_id  BIGINT           Position in the snapshot.
--   device         BIGINT           Device number in the process.
--   stage          VARCHAR          START or END.
--   name           VARCHAR          Name of the annotation.
--   time_ns        BIGINT [ns]      Unix time of the start or end.
SELECT x.* EXCLUDE (span)
FROM stored.snapshot_annotations AS x
