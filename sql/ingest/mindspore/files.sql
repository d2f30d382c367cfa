-- Files of one rank of a MindSpore cluster, with unit conversions.

-- name: raw
-- One row: the files of one rank of a MindSpore cluster as JSON; NULL if a file does not exist.
--
-- A CSV file is given as a list of objects: column name ─▶ string.
CREATE OR REPLACE TABLE mindspore_raw AS
SELECT
    $step_trace::JSON AS step_trace,
    $analysis::JSON AS analysis,
    $hccl::JSON AS hccl,
    $flops::JSON AS flops,
    $memory::JSON AS memory,
    $parallel_mode::VARCHAR AS parallel_mode,
    $stage_count::BIGINT AS stage_count,
    $device_count::BIGINT AS device_count;

-- name: ms_to_ns
-- Milliseconds in a string, converted to nanoseconds; DECIMAL removes the rounding noise of sums of floats.
CREATE OR REPLACE MACRO mindspore_ms_to_ns(ms) AS TRY_CAST(TRY_CAST(ms AS DECIMAL(28, 6)) * 1_000_000 AS BIGINT);

-- name: ticks_to_ns
-- Device ticks of 10 ns, converted to nanoseconds.
CREATE OR REPLACE MACRO mindspore_ticks_to_ns(ticks) AS TRY_CAST(ticks AS BIGINT) * 10;
