-- Communication operators of a MindSpore cluster, one row per rank, step and operator.
CREATE OR REPLACE VIEW cluster_communication AS
-- Columns:
--   run               VARCHAR      Run: one capture of one job.
--   rank              INTEGER      Rank of the process.
--   step              BIGINT       Number of the step; NULL: the mean that the recorder wrote.
--   name              VARCHAR      Name of the operator.
--   stream            BIGINT       Device stream, from the name.
--   kind              VARCHAR      AllReduce, AllGather, Send, Receive and so on, from the name.
--   start_clock_ns    BIGINT [ns]  Start, in the clock of the device; NULL where the step trace does not have it.
--   dur               BIGINT [ns]  Duration in the step trace.
--   communication_ns  BIGINT [ns]  Time in which it moved data; NULL without HCCL data.
--   wait_ns           BIGINT [ns]  Time in which it waited for other ranks.
SELECT
    x.run,
    x.rank,
    x.step,
    x.name,
    x.stream,
    x.kind,
    x.start_clock_ns,
    x.dur,
    x.communication_ns,
    x.wait_ns
FROM stored.cluster_communication AS x
