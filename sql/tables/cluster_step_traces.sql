-- Steps of each rank of a MindSpore cluster, as measured by its profiler.
CREATE OR REPLACE VIEW cluster_step_traces AS
-- Columns:
--   run                     VARCHAR      Run name: one capture of one job.
--   rank                    INTEGER      Rank of the process.
--   step                    BIGINT       Step number; NULL for the recorder's mean over the steps, which may include steps not stored here.
--   start_clock_ns          BIGINT [ns]  Start on the device clock.
--   end_clock_ns            BIGINT [ns]  End on the device clock.
--   forward_clock_ns        BIGINT [ns]  Start of the forward pass on the device clock.
--   backward_clock_ns       BIGINT [ns]  End of the backward pass on the device clock.
--   total_ns                BIGINT [ns]  Step duration: iteration interval, forward and backward pass, and tail.
--   iteration_interval_ns   BIGINT [ns]  Time from the end of the previous step to the forward pass, for data loading.
--   forward_backward_ns     BIGINT [ns]  Duration of the forward and backward pass.
--   tail_ns                 BIGINT [ns]  Time from the end of the backward pass to the end of the step, for the parameter update.
--   computation_ns          BIGINT [ns]  Compute time; like the next four columns, NULL without a file from the cluster analysis.
--   communication_alone_ns  BIGINT [ns]  Exposed communication time (not overlapped by compute).
--   receive_alone_ns        BIGINT [ns]  Time in receives without concurrent compute or other communication (pipeline parallelism).
--   collective_alone_ns     BIGINT [ns]  Exposed communication time outside receives (pipeline parallelism).
--   stage_ns                BIGINT [ns]  Step duration minus receive_alone_ns (pipeline parallelism).
--   communication_ns        BIGINT [ns]  Total time during which communication operators transferred data; NULL without HCCL data.
--   communication_wait_ns   BIGINT [ns]  Total time during which communication operators waited for other ranks; NULL without HCCL data.
SELECT x.* EXCLUDE (span)
FROM stored.cluster_step_traces AS x
