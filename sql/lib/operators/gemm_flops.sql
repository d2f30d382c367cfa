-- Floating-point operations of a matrix product, of a batch of products, or of grouped products.
--
-- For groups, such as the experts of a mixture-of-experts layer, m is the total number of rows over all groups.
CREATE OR REPLACE MACRO lib.gemm_flops(
    -- Rows of the first matrix.
    m,
    -- Columns of the second matrix.
    n,
    -- Columns of the first and rows of the second matrix.
    k,
    -- Number of products in the batch.
    batch := 1
) AS
-- Returns: BIGINT [1]  Operations, two per multiply-add, computed in doubles. Overflow gives NULL, because a trace may contain any sizes.
TRY_CAST(2 * batch::DOUBLE * m::DOUBLE * n::DOUBLE * k::DOUBLE AS BIGINT)
