-- One row: the files of one rank of a MindSpore cluster, as JSON; NULL: there is no such file.
--
-- The CSV files come as lists of objects: column name ─▶ text.
CREATE OR REPLACE TABLE mindspore_raw AS
SELECT
    $step_trace::JSON AS step_trace,
    $analysis::JSON AS analysis,
    $hccl::JSON AS hccl,
    $flops::JSON AS flops,
    $memory::JSON AS memory,
    $parallel_mode::VARCHAR AS parallel_mode,
    $stage_count::BIGINT AS stage_count,
    $device_count::BIGINT AS device_count
