-- Steps of a MindSpore cluster, one per rank, as its profiler measured them.
CREATE OR REPLACE VIEW cluster_step_traces AS
-- Columns:
--   run                     VARCHAR      Run: one capture of one job.
--   rank                    INTEGER      Rank of the process.
--   step                    BIGINT       Number of the step; NULL: the mean that the recorder wrote, over steps that may not be here.
--   start_clock_ns          BIGINT [ns]  Start, in the clock of the device.
--   end_clock_ns            BIGINT [ns]  End, in the clock of the device.
--   forward_clock_ns        BIGINT [ns]  Start of the forward pass, in the clock of the device.
--   backward_clock_ns       BIGINT [ns]  End of the backward pass, in the clock of the device.
--   total_ns                BIGINT [ns]  Length of the step: interval, forward and backward, tail.
--   iteration_interval_ns   BIGINT [ns]  From the end of the last step to the forward pass: getting data.
--   forward_backward_ns     BIGINT [ns]  Forward and backward pass.
--   tail_ns                 BIGINT [ns]  From the end of the backward pass to the end of the step: parameters are updated.
--   computation_ns          BIGINT [ns]  Computing; NULL where no file of the cluster analysis says so, as below.
--   communication_alone_ns  BIGINT [ns]  Communicating and not computing.
--   receive_alone_ns        BIGINT [ns]  Receiving and nothing else (pipeline parallel).
--   collective_alone_ns     BIGINT [ns]  Communicating without receiving, and not computing (pipeline parallel).
--   stage_ns                BIGINT [ns]  The step without receiving alone (pipeline parallel).
--   communication_ns        BIGINT [ns]  Time in which communication operators moved data, added up; NULL without HCCL data.
--   communication_wait_ns   BIGINT [ns]  Time in which communication operators waited for other ranks, added up.
SELECT
    x.run,
    x.rank,
    x.step,
    x.start_clock_ns,
    x.end_clock_ns,
    x.forward_clock_ns,
    x.backward_clock_ns,
    x.total_ns,
    x.iteration_interval_ns,
    x.forward_backward_ns,
    x.tail_ns,
    x.computation_ns,
    x.communication_alone_ns,
    x.receive_alone_ns,
    x.collective_alone_ns,
    x.stage_ns,
    x.communication_ns,
    x.communication_wait_ns
FROM stored.cluster_step_traces AS x
