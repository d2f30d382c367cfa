-- Mean of values by weight, with the same digits at any number of threads.
--
-- An aggregate: of the values that are not NULL in each group, each taken to a millionth, so that all sums
-- are whole; sums of doubles vary with the order of the threads.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib._weighted_mean(
    -- The values, DOUBLE.
    x,
    -- Their weights, BIGINT.
    weight
) AS
-- Returns: DOUBLE [1]  Mean in the unit of x; NULL where the weights sum to 0.
(sum(round(x * 1000000)::HUGEINT * weight) / nullif(sum(CASE WHEN x IS NOT NULL THEN weight END), 0)) / 1000000
