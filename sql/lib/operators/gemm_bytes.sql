-- Bytes that a product of matrices has to move: both inputs once, the output once.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib.gemm_bytes(
    -- Rows of the first matrix.
    m,
    -- Columns of the second one.
    n,
    -- Columns of the first and rows of the second one.
    k,
    -- Bytes of an element of the inputs.
    input_size,
    -- Bytes of an element of the output.
    output_size,
    -- Products in the batch.
    batch := 1
) AS
-- Returns: BIGINT [bytes]  Bytes.
TRY_CAST(
    batch::DOUBLE * ((m::DOUBLE * k::DOUBLE + k::DOUBLE * n::DOUBLE) * input_size::DOUBLE + m::DOUBLE * n::DOUBLE * output_size::DOUBLE) AS BIGINT
)
