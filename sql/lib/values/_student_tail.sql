-- The upper tail of Student's distribution: the probability of a value of at least t by chance.
--
-- Exact for one and two degrees of freedom. For more, which need not be whole, Hill's expansion gives the normal
-- deviate with the same tail, whose tail is a continued fraction. Its relative error stays below 2 % from three degrees of
-- freedom on, also in far tails.
--
-- Status: experimental
-- Since: 0.1
-- Reference: G. W. Hill, Algorithm 395: Student's t-distribution, CACM 13 (1970)
CREATE OR REPLACE MACRO lib._student_tail(
    -- The value, in standard errors.
    t,
    -- Degrees of freedom, at least 1.
    freedom
) AS
-- Returns: DOUBLE [1]  The probability; 1 for a negative value, whose tail never matters.
CASE
    WHEN t <= 0 OR t IS NULL THEN 1.0
    WHEN freedom < 1.5 THEN 0.5 - atan(t) / pi()
    -- Written as a sum of positive terms, the far tail keeps its digits.
    WHEN freedom < 2.5 THEN 1 / ((t * t + 2) * (1 + t / sqrt(t * t + 2)))
    ELSE lib._normal_tail(
        list_transform(
            [freedom - 0.5],
            lambda a: list_transform(
                [a * ln(1 + t * t / freedom)],
                lambda y: (((((-0.4 * y - 3.3) * y - 24) * y - 85.5) / (0.8 * y * y + 100 + 48 * a * a) + y + 3) / (48 * a * a) + 1) * sqrt(y)
            )[1]
        )[1]
    )
END
