-- Upper tail of the binomial distribution: the probability of at least k successes in n trials by chance.
CREATE OR REPLACE MACRO lib._binomial_tail(
    -- Number of successes.
    k,
    -- Number of trials.
    n,
    -- Probability of a success in each trial, above 0 and below 1.
    chance
) AS
-- Returns: DOUBLE [1]  Probability of at least k successes.
coalesce(
    list_sum(
        list_transform(
            range(k::BIGINT, n::BIGINT + 1),
            lambda i: exp(lgamma(n + 1) - CASE WHEN i = 0 THEN 0 ELSE lgamma(i + 1) END - CASE WHEN i = n THEN 0 ELSE lgamma(n - i + 1) END
                + i * ln(chance) + (n - i) * ln(1 - chance))
        )
    ),
    0.0
)
