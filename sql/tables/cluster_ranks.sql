-- Ranks of a MindSpore cluster: how the job is parallel, and FLOPs and memory as they were recorded.
CREATE OR REPLACE VIEW cluster_ranks AS
-- Columns:
--   run                         VARCHAR         Run: one capture of one job.
--   rank                        INTEGER         Rank of the process.
--   parallel_mode               VARCHAR         data-parallel, model-parallel or pipeline-parallel.
--   stage_count                 BIGINT [count]  Pipeline stages.
--   device_count                BIGINT [count]  Devices of the job.
--   recorded_flops              DOUBLE [1]      FLOPs as recorded; the file names no unit.
--   recorded_flops_rate         DOUBLE [1]      FLOPS as recorded; the file names no unit.
--   recorded_flops_utilization  DOUBLE [1]      FLOPS_Utilization as recorded.
--   recorded_peak_memory        DOUBLE [1]      peak_mem as recorded; the file names no unit.
--   recorded_memory_capacity    DOUBLE [1]      capacity as recorded; the file names no unit.
SELECT
    x.run,
    x.rank,
    x.parallel_mode,
    x.stage_count,
    x.device_count,
    x.recorded_flops,
    x.recorded_flops_rate,
    x.recorded_flops_utilization,
    x.recorded_peak_memory,
    x.recorded_memory_capacity
FROM stored.cluster_ranks AS x
