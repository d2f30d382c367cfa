-- Output sizes of a convolution.
--
-- A single value of stride, padding or dilation applies to all dimensions.
CREATE OR REPLACE MACRO lib.conv_output_shape(
    -- Sizes of the input: [batch, channels, height, width], or with fewer or more dimensions.
    x,
    -- Sizes of the weight: [output channels, channels of a group, height, width].
    w,
    -- Stride in each dimension.
    stride,
    -- Padding in each dimension.
    padding,
    -- Dilation in each dimension.
    dilation
) AS
-- Returns: BIGINT[]  Sizes; NULL for incompatible shapes.
CASE
    WHEN len(w) >= 3 AND len(w) = len(x) AND len(stride) > 0 AND len(padding) > 0 AND len(dilation) > 0 THEN
        [x[1]::BIGINT, w[1]::BIGINT] || list_transform(
            range(1, len(x)::BIGINT - 1),
            lambda i: TRY_CAST(
                trunc((
                    x[i + 2]::DOUBLE + 2 * padding[least(i, len(padding))]::DOUBLE
                    - dilation[least(i, len(dilation))]::DOUBLE * (w[i + 2]::DOUBLE - 1) - 1
                ) / nullif(stride[least(i, len(stride))]::DOUBLE, 0)) + 1 AS BIGINT
            )
        )
END
