-- Links between the ranks of a MindSpore cluster: time and traffic, by step and operator.
CREATE OR REPLACE VIEW cluster_links AS
-- Columns:
--   run        VARCHAR         Run: one capture of one job.
--   rank       INTEGER         Rank of the process.
--   step       BIGINT          Number of the step; NULL: the mean that the recorder wrote.
--   operator   VARCHAR         Name of the communication operator; NULL: all operators of the step.
--   src_rank   BIGINT          Sending rank.
--   dst_rank   BIGINT          Receiving rank.
--   link_type  VARCHAR         SDMA inside a server, RDMA between servers.
--   dur        BIGINT [ns]     Time in which data moved.
--   bytes      BIGINT [bytes]  Traffic.
SELECT
    x.run,
    x.rank,
    x.step,
    x.operator,
    x.src_rank,
    x.dst_rank,
    x.link_type,
    x.dur,
    x.bytes
FROM stored.cluster_links AS x
