-- Median of a sorted list without one of its values.
CREATE OR REPLACE MACRO lib._median_of_others(
    -- All values, sorted.
    sorted_values,
    -- Position of the excluded value, from 1.
    position
) AS
-- Returns: DOUBLE [1]  Median in the unit of the values; NULL for a list with a single value.
CASE
    WHEN len(sorted_values) < 2 THEN NULL
    WHEN len(sorted_values) % 2 = 0 THEN sorted_values[len(sorted_values) // 2 + (position <= len(sorted_values) // 2)::INTEGER]::DOUBLE
    ELSE (
        sorted_values[len(sorted_values) // 2 + (position <= len(sorted_values) // 2)::INTEGER]::DOUBLE
        + sorted_values[len(sorted_values) // 2 + 1 + (position <= len(sorted_values) // 2 + 1)::INTEGER]::DOUBLE
    ) / 2
END
