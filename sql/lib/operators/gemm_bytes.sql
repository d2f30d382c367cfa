-- Bytes that a matrix product must move: both inputs once, the output once.
CREATE OR REPLACE MACRO lib.gemm_bytes(
    -- Rows of the first matrix.
    m,
    -- Columns of the second matrix.
    n,
    -- Columns of the first and rows of the second matrix.
    k,
    -- Element size of the inputs.
    input_size,
    -- Element size of the output.
    output_size,
    -- Number of products in the batch.
    batch := 1
) AS
-- Returns: BIGINT [bytes]  Bytes read and written.
TRY_CAST(
    batch::DOUBLE * ((m::DOUBLE * k::DOUBLE + k::DOUBLE * n::DOUBLE) * input_size::DOUBLE + m::DOUBLE * n::DOUBLE * output_size::DOUBLE) AS BIGINT
)
