-- Name of a device for people, from the numbers that torch gives its allocators.
CREATE OR REPLACE MACRO lib.device_label(
    -- Device type as torch numbers it: 0 CPU, 1 CUDA or ROCm.
    kind_number,
    -- Device number; -1: CPU.
    device_number
) AS
-- Returns: VARCHAR  CPU, GPU 0, or device 0 of type 3; NULL if the type is not recorded.
CASE kind_number
    WHEN 0 THEN 'CPU'
    WHEN 1 THEN concat_ws(' ', 'GPU', device_number)
    ELSE 'device ' || coalesce(device_number::VARCHAR, '?') || ' of type ' || kind_number
END
