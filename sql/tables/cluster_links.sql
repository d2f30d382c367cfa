-- Links between the ranks of a MindSpore cluster: time and volume by step and operator.
CREATE OR REPLACE VIEW cluster_links AS
-- Columns:
--   run        VARCHAR         Run name: one capture of one job.
--   rank       INTEGER         Rank of the process.
--   step       BIGINT          Step number; NULL for the recorder's mean over the steps.
--   operator   VARCHAR         Communication operator; NULL for all operators of the step.
--   src_rank   BIGINT          Sending rank.
--   dst_rank   BIGINT          Receiving rank.
--   link_type  VARCHAR         SDMA within a server, RDMA between servers.
--   dur        BIGINT [ns]     Time transferring data.
--   bytes      BIGINT [bytes]  Transferred bytes.
SELECT x.* EXCLUDE (span)
FROM stored.cluster_links AS x
