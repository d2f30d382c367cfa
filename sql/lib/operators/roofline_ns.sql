-- Roofline time: lower bound on the time for given work if a device computes and moves data concurrently, both at
-- peak rates.
CREATE OR REPLACE MACRO lib.roofline_ns(
    -- Floating-point operations.
    flop_count,
    -- Bytes read and written.
    byte_total,
    -- Peak compute rate [TFLOP/s].
    flop_peak,
    -- Peak memory bandwidth [TB/s].
    byte_peak
) AS
-- Returns: DOUBLE [ns]  Time; NULL if an input is unknown. Work without operations needs no peak compute rate.
CASE
    WHEN flop_count = 0 THEN byte_total / (1000.0 * byte_peak)
    WHEN flop_count IS NOT NULL AND byte_total IS NOT NULL AND flop_peak IS NOT NULL AND byte_peak IS NOT NULL THEN
        greatest(flop_count / (1000.0 * flop_peak), byte_total / (1000.0 * byte_peak))
END::DOUBLE
