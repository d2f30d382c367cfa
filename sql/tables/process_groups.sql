-- Process groups that the traces list.
CREATE OR REPLACE VIEW process_groups AS
-- Columns:
--   run             VARCHAR         Run: one capture of one job.
--   rank            INTEGER         Rank of the process.
--   pg_name         VARCHAR         Name.
--   pg_desc         VARCHAR         Description.
--   backend_config  VARCHAR         Backend per device type.
--   pg_size         BIGINT [count]  Ranks.
--   pg_ranks        VARCHAR         Global ranks as JSON.
SELECT
    x.run,
    x.rank,
    x.pg_name,
    x.pg_desc,
    x.backend_config,
    x.pg_size,
    x.pg_ranks
FROM stored.process_groups AS x
QUALIFY x.span = min(x.span) OVER (PARTITION BY x.run, x.rank, x.pg_name)
