-- Floating-point operations of a convolution in any number of dimensions; its bias is not counted.
--
-- A convolution has one product of the weight for each place of its output, a transposed one for each place of its
-- input. The gradient of the input costs as much, and that of the weight.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib.conv_flops(
    -- Sizes of the weight: [output channels, channels of a group, height, width], or with fewer or more dimensions.
    w,
    -- Sizes of the output, of a transposed convolution of the input: [batch, channels, height, width].
    out_sizes
) AS
-- Returns: BIGINT [1]  Two for each multiplication with its addition; NULL for shapes that do not fit.
CASE
    WHEN len(w) >= 3 AND len(w) = len(out_sizes) THEN
        TRY_CAST(2 * out_sizes[1]::DOUBLE * list_product(out_sizes[3:]) * list_product(w) AS BIGINT)
END
