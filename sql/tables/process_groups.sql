-- Process groups listed in the traces.
CREATE OR REPLACE VIEW process_groups AS
-- Columns:
--   run             VARCHAR         Run name: one capture of one job.
--   rank            INTEGER         Rank of the process.
--   pg_name         VARCHAR         Process group name.
--   pg_desc         VARCHAR         Process group description.
--   backend_config  VARCHAR         Backend per device type.
--   pg_size         BIGINT [count]  Number of ranks in the process group.
--   pg_ranks        VARCHAR         Global ranks of the process group as JSON.
SELECT x.* EXCLUDE (span)
FROM stored.process_groups AS x
QUALIFY x.span = min(x.span) OVER (PARTITION BY x.run, x.rank, x.pg_name)
