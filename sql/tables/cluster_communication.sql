-- Communication operators of a MindSpore cluster, one row per rank, step and operator.
CREATE OR REPLACE VIEW cluster_communication AS
-- Columns:
--   run               VARCHAR      Run name: one capture of one job.
--   rank              INTEGER      Rank of the process.
--   step              BIGINT       Step number; NULL for the recorder's mean over the steps.
--   name              VARCHAR      Operator name.
--   stream            BIGINT       Device stream, parsed from the name.
--   kind              VARCHAR      Kind of operator, parsed from the name: AllReduce, AllGather, Send, Receive and so on.
--   start_clock_ns    BIGINT [ns]  Start on the device clock; NULL if not in the step trace.
--   dur               BIGINT [ns]  Duration in the step trace.
--   communication_ns  BIGINT [ns]  Time transferring data; NULL without HCCL data.
--   wait_ns           BIGINT [ns]  Time waiting for other ranks; NULL without HCCL data.
SELECT x.* EXCLUDE (span)
FROM stored.cluster_communication AS x
