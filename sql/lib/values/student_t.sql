-- Student's t quantile for a two-sided confidence interval, in standard errors of a difference of means.
--
-- Reference: 0.995 and 0.9995 quantiles of Student's t distribution
CREATE OR REPLACE MACRO lib.student_t(
    -- Whether to use a confidence level of 99.9 %, for one of many comparisons, instead of 99 %.
    of_many,
    -- Number of degrees of freedom.
    freedom
) AS
-- Returns: DOUBLE [1]  Quantile; NULL below one degree of freedom; above 30, the quantile for 30.
    CASE
        WHEN freedom < 1 THEN NULL
        WHEN of_many THEN
            [
                636.619, 31.599, 12.924, 8.610, 6.869, 5.959, 5.408, 5.041, 4.781, 4.587,
                4.437, 4.318, 4.221, 4.140, 4.073, 4.015, 3.965, 3.922, 3.883, 3.850,
                3.819, 3.792, 3.768, 3.745, 3.725, 3.707, 3.690, 3.674, 3.659, 3.646
            ][least(freedom, 30)::INTEGER]
        ELSE
            [
                63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169,
                3.106, 3.055, 3.012, 2.977, 2.947, 2.921, 2.898, 2.878, 2.861, 2.845,
                2.831, 2.819, 2.807, 2.797, 2.787, 2.779, 2.771, 2.763, 2.756, 2.750
            ][least(freedom, 30)::INTEGER]
    END::DOUBLE
