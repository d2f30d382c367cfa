-- Sample standard deviation of whole numbers, with the same digits at any number of threads.
--
-- An aggregate: of the values that are not NULL in each group. It is made of whole sums, where
-- stddev_samp adds up doubles in the order of the threads, so that its last digits vary.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib.exact_std(
    -- The values, BIGINT.
    x
) AS
-- Returns: DOUBLE [1]  Standard deviation in the unit of x; NULL for fewer than two values.
sqrt((count(x) * sum(x::HUGEINT * x) - sum(x) * sum(x)) / nullif(count(x) * (count(x) - 1), 0))
