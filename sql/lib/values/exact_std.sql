-- Sample standard deviation of integers, with the same digits for any number of threads.
--
-- An aggregate over the non-NULL values of each group. It uses integer sums, whereas stddev_samp sums doubles in the
-- order of the threads, so its last digits vary.
CREATE OR REPLACE MACRO lib.exact_std(
    -- Values of type BIGINT.
    x
) AS
-- Returns: DOUBLE [1]  Standard deviation in the unit of x; NULL for fewer than two values.
sqrt((count(x) * sum(x::HUGEINT * x) - sum(x) * sum(x)) / nullif(count(x) * (count(x) - 1), 0))
