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
batch::BIGINT * ((m::BIGINT * k::BIGINT + k::BIGINT * n::BIGINT) * input_size::BIGINT + m::BIGINT * n::BIGINT * output_size::BIGINT)
