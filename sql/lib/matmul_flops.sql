-- Floating-point operations of a product of matrices, or of two batches of them.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib.matmul_flops(
    -- Sizes of the first input: [m, k], or [b, m, k].
    a,
    -- Sizes of the second input: [k, n], or [b, k, n].
    b
) AS
-- Returns: BIGINT [count]  Two for each multiplication with its addition; NULL for other shapes.
CASE
    WHEN len(a) = 3 AND len(b) = 3 THEN 2 * a[1]::BIGINT * a[2]::BIGINT * a[3]::BIGINT * b[3]::BIGINT
    WHEN len(a) = 2 AND len(b) = 2 THEN 2 * a[1]::BIGINT * a[2]::BIGINT * b[2]::BIGINT
END
