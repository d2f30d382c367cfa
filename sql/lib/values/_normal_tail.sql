-- Upper tail of the normal distribution: the probability of a value of at least z by chance.
--
-- Computed by Laplace's continued fraction for z >= 1.5 and by a polynomial for smaller z; the relative error is below
-- 1e-4.
--
-- Reference: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.2.14 and 26.2.17
CREATE OR REPLACE MACRO lib._normal_tail(
    -- Value in standard deviations; not negative.
    z
) AS
-- Returns: DOUBLE [1]  Probability of a value of at least z.
CASE
    WHEN z < 1.5 THEN list_transform(
        [1 / (1 + 0.2316419 * z)],
        lambda k: exp(-z * z / 2) / sqrt(2 * pi())
            * k * (0.319381530 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))))
    )[1]
    ELSE exp(-z * z / 2) / sqrt(2 * pi())
        / (z + 1 / (z + 2 / (z + 3 / (z + 4 / (z + 5 / (z + 6 / (z + 7 / (z + 8 / (z + 9 / (z + 10 / (z + 2.5)))))))))))
END
