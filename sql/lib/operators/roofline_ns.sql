-- The least time in which a device can do some work: it computes at its peak while it moves data at its peak.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib.roofline_ns(
    -- Floating-point operations.
    flop_count,
    -- Bytes read and written.
    byte_total,
    -- Peak of the arithmetic [TFLOP/s].
    flop_peak,
    -- Peak of the memory [TB/s].
    byte_peak
) AS
-- Returns: DOUBLE [ns]  Time; NULL where one of them is not known. No arithmetic needs no peak of it.
CASE
    WHEN flop_count = 0 THEN byte_total / (1000.0 * byte_peak)
    WHEN flop_count IS NOT NULL AND byte_total IS NOT NULL AND flop_peak IS NOT NULL AND byte_peak IS NOT NULL THEN
        greatest(flop_count / (1000.0 * flop_peak), byte_total / (1000.0 * byte_peak))
END::DOUBLE
