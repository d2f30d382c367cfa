-- Milliseconds, as text, to nanoseconds: sums of floats that were printed whole lose their noise.
CREATE OR REPLACE MACRO mindspore_ms_to_ns(ms) AS TRY_CAST(TRY_CAST(ms AS DECIMAL(28, 6)) * 1_000_000 AS BIGINT);
-- The device counts in steps of 10 ns.
CREATE OR REPLACE MACRO mindspore_ticks_to_ns(ticks) AS TRY_CAST(ticks AS BIGINT) * 10;
