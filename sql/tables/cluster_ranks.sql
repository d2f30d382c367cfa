-- Ranks of a MindSpore cluster, with their parallelism and their recorded FLOPs and memory.
CREATE OR REPLACE VIEW cluster_ranks AS
-- Columns:
--   run                         VARCHAR         Run name: one capture of one job.
--   rank                        INTEGER         Rank of the process.
--   parallel_mode               VARCHAR         data-parallel, model-parallel or pipeline-parallel.
--   stage_count                 BIGINT [count]  Number of pipeline stages.
--   device_count                BIGINT [count]  Number of devices in the job.
--   recorded_flops              DOUBLE [1]      Recorded FLOPs; the file does not state the unit.
--   recorded_flops_rate         DOUBLE [1]      Recorded FLOPS; the file does not state the unit.
--   recorded_flops_utilization  DOUBLE [1]      Recorded FLOPS_Utilization.
--   recorded_peak_memory        DOUBLE [1]      Recorded peak_mem; the file does not state the unit.
--   recorded_memory_capacity    DOUBLE [1]      Recorded capacity; the file does not state the unit.
SELECT x.* EXCLUDE (span)
FROM stored.cluster_ranks AS x
