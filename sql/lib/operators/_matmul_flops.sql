-- Floating-point operations of a matrix product, or of a batch of them.
CREATE OR REPLACE MACRO lib._matmul_flops(
    -- Sizes of the first input: [m, k], or [b, m, k].
    a,
    -- Sizes of the second input: [k, n], or [b, k, n].
    b
) AS
-- Returns: BIGINT [count]  Operations, two per multiply-add; NULL for other shapes.
CASE
    WHEN len(a) = 3 AND len(b) = 3 THEN lib.gemm_flops(a[2], b[3], a[3], batch := a[1])
    WHEN len(a) = 2 AND len(b) = 2 THEN lib.gemm_flops(a[1], b[2], a[2])
END
