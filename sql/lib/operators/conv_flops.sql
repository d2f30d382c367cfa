-- Floating-point operations of a convolution in any number of dimensions, without its bias.
--
-- A convolution multiplies the weight once for each output position, a transposed convolution once for each input
-- position. The gradient of the input and the gradient of the weight each cost as much as the convolution.
CREATE OR REPLACE MACRO lib.conv_flops(
    -- Sizes of the weight: [output channels, channels of a group, height, width], or with fewer or more dimensions.
    w,
    -- Sizes of the output (of the input for a transposed convolution): [batch, channels, height, width].
    out_sizes
) AS
-- Returns: BIGINT [1]  Operations, two per multiply-add; NULL for incompatible shapes.
CASE
    WHEN len(w) >= 3 AND len(w) = len(out_sizes) THEN
        TRY_CAST(2 * out_sizes[1]::DOUBLE * list_product(out_sizes[3:]) * list_product(w) AS BIGINT)
END
