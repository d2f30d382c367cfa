-- One row with the properties of the whole rank; no row if no file with such properties exists.
CREATE OR REPLACE TABLE staged_cluster_ranks AS
SELECT
    w.parallel_mode,
    w.stage_count,
    w.device_count,
    TRY_CAST(w.flops ->> '$.FLOPs' AS DOUBLE) AS recorded_flops,
    TRY_CAST(w.flops ->> '$.FLOPS' AS DOUBLE) AS recorded_flops_rate,
    TRY_CAST(w.flops ->> '$.FLOPS_Utilization' AS DOUBLE) AS recorded_flops_utilization,
    TRY_CAST(w.memory ->> '$.peak_mem' AS DOUBLE) AS recorded_peak_memory,
    TRY_CAST(w.memory ->> '$.capacity' AS DOUBLE) AS recorded_memory_capacity
FROM mindspore_raw AS w
WHERE w.parallel_mode IS NOT NULL OR w.flops IS NOT NULL OR w.memory IS NOT NULL
