-- Upper tail of Student's t distribution: the probability of a value of at least t by chance.
--
-- Exact for one and two degrees of freedom. For more degrees of freedom, which need not be a whole number, Hill's
-- expansion gives the normal deviate with the same tail. From three degrees of freedom, its relative error is below
-- 2 %, even in the far tail.
--
-- Reference: G. W. Hill, Algorithm 395: Student's t-distribution, CACM 13 (1970)
CREATE OR REPLACE MACRO lib.student_tail(
    -- Value in standard errors.
    t,
    -- Number of degrees of freedom, at least 1.
    freedom
) AS
-- Returns: DOUBLE [1]  Probability of a value of at least t; 1 if t is NULL or not positive, because no caller needs the tail of such values.
CASE
    WHEN t <= 0 OR t IS NULL THEN 1.0
    WHEN freedom < 1.5 THEN 0.5 - atan(t) / pi()
    -- With only positive terms in the sum, the far tail keeps its precision.
    WHEN freedom < 2.5 THEN 1 / ((t * t + 2) * (1 + t / sqrt(t * t + 2)))
    -- Lambdas bind a value once; a macro argument is expanded at every use.
    ELSE list_transform(
        list_transform(
            [{'a': freedom - 0.5, 'y': (freedom - 0.5) * ln(1 + t * t / freedom)}],
            lambda v: (
                ((((-0.4 * v.y - 3.3) * v.y - 24) * v.y - 85.5) / (0.8 * v.y * v.y + 100 + 48 * v.a * v.a) + v.y + 3) / (48 * v.a * v.a) + 1
            ) * sqrt(v.y)
        ),
        lambda z: lib._normal_tail(z)
    )[1]
END
