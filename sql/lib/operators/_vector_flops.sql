-- Floating-point operations of elementwise computations: normalization, softmax, sums and others.
--
-- Additions, multiplications, divisions, comparisons and functions such as exp count as one operation each. Kernels
-- that recompute intermediate values perform more operations. The cost of such operations is determined by the bytes
-- that they move.
CREATE OR REPLACE MACRO lib._vector_flops(
    -- elementwise, reduce, softmax, softmax_backward, norm, norm_backward, rms_norm or rms_norm_backward.
    op_kind,
    -- Number of elements of the input; for elementwise operations, of the output.
    elements
) AS
-- Returns: BIGINT [1]  Operations; NULL for any other kind.
TRY_CAST(elements::DOUBLE * CASE op_kind
    WHEN 'elementwise' THEN 1
    WHEN 'reduce' THEN 1
    -- Maximum, difference, exp, sum, quotient.
    WHEN 'softmax' THEN 5
    -- Product, sum, difference, product.
    WHEN 'softmax_backward' THEN 4
    -- Sum; difference, square, sum; difference, product; weight, bias.
    WHEN 'norm' THEN 8
    -- Normalized value 2, weight 1, two sums 3, gradient 3, gradients of weight and bias 3.
    WHEN 'norm_backward' THEN 12
    -- Square, sum; product, weight.
    WHEN 'rms_norm' THEN 4
    -- Normalized value 1, weight 1, sum 2, gradient 2, gradient of the weight 2.
    WHEN 'rms_norm_backward' THEN 8
END AS BIGINT)
