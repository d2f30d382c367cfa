-- Floating-point operations of a product of matrices, of a batch of them, or of groups.
--
-- Of groups, as the experts of a mixture, m is the sum of the rows of all groups.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib.gemm_flops(
    -- Rows of the first matrix.
    m,
    -- Columns of the second one.
    n,
    -- Columns of the first and rows of the second one.
    k,
    -- Products in the batch.
    batch := 1
) AS
-- Returns: BIGINT [1]  Two for each multiplication with its addition.
-- In doubles, which overflow to NULL: sizes of a trace may be any numbers.
TRY_CAST(2 * batch::DOUBLE * m::DOUBLE * n::DOUBLE * k::DOUBLE AS BIGINT)
