-- Process groups listed in the Flight Recorder dump of each rank.
CREATE OR REPLACE VIEW fr_groups AS
-- Columns:
--   run             VARCHAR         Run: one capture of one job.
--   rank            INTEGER         Rank of the process that wrote the dump.
--   pg_id           BIGINT          Number of the process group in its process; NULL for a group without entries.
--   pg_name         VARCHAR         Process group name.
--   pg_desc         VARCHAR         Description of the process group, such as default_pg.
--   member_ranks    VARCHAR         Ranks of the group as JSON, such as [0,1]; NULL if the dump does not state them, as for gloo.
--   member_count    BIGINT [count]  Number of ranks in the group.
--   last_enqueued_id   BIGINT          Number of the last collective that the host enqueued; for gloo, sends and receives count too.
--   last_started_id    BIGINT          Number of the last collective that the device started.
--   last_completed_id  BIGINT          Number of the last collective that completed.
SELECT x.* EXCLUDE (span)
FROM stored.fr_groups AS x
