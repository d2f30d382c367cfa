-- Weighted mean of values, with the same digits for any number of threads.
--
-- An aggregate over the non-NULL values of each group. Each value is rounded to a millionth, so all sums are
-- integers; sums of doubles depend on the order of the threads.
CREATE OR REPLACE MACRO lib.weighted_mean(
    -- Values of type DOUBLE.
    x,
    -- Weights of type BIGINT.
    weight
) AS
-- Returns: DOUBLE [1]  Mean in the unit of x; NULL if the weights sum to 0.
(sum(round(x * 1000000)::HUGEINT * weight) / nullif(sum(CASE WHEN x IS NOT NULL THEN weight END), 0)) / 1000000
