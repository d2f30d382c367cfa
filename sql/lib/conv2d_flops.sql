-- Floating-point operations of a two-dimensional convolution.
--
-- Stride, padding and dilation of one size hold for both dimensions.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib.conv2d_flops(
    -- Sizes of the input: [batch, channels, height, width].
    x,
    -- Sizes of the weight: [output channels, channels of a group, height, width].
    w,
    -- Stride of height and width.
    stride,
    -- Padding, likewise.
    padding,
    -- Dilation, likewise.
    dilation
) AS
-- Returns: BIGINT [count]  Two for each multiplication with its addition; NULL for other shapes.
CASE
    WHEN len(x) = 4 AND len(w) = 4 THEN
        2 * x[1]::BIGINT * w[1]::BIGINT * w[2]::BIGINT * w[3]::BIGINT * w[4]::BIGINT
        * ((x[3]::BIGINT + 2 * padding[1]::BIGINT - dilation[1]::BIGINT * (w[3]::BIGINT - 1) - 1) // stride[1]::BIGINT + 1)
        * ((x[4]::BIGINT + 2 * padding[-1]::BIGINT - dilation[-1]::BIGINT * (w[4]::BIGINT - 1) - 1) // stride[-1]::BIGINT + 1)
END
