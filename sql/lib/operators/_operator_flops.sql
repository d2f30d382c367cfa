-- Floating-point operations of one operator call, as counted by torch (with_flops=True).
--
-- torch has formulas for convolutions, matrix products, additions and multiplications.
--
-- Reference: torch/csrc/profiler/util.cpp, computeFlops
CREATE OR REPLACE MACRO lib._operator_flops(
    -- Name without the overload.
    op_name,
    -- Input shapes as JSON.
    shapes,
    -- Scalar inputs as JSON.
    scalars
) AS
-- Returns: BIGINT [count]  Operations; NULL for other operators, and if inputs are not recorded.
CASE
    WHEN op_name = 'aten::conv2d' AND len(lib._shape_of(shapes, '$[1]')) = 4 THEN lib.conv_flops(
        lib._shape_of(shapes, '$[1]'),
        lib.conv_output_shape(
            lib._shape_of(shapes, '$[0]'),
            lib._shape_of(shapes, '$[1]'),
            TRY_CAST(json_extract_string(scalars::VARCHAR, '$[3]') AS BIGINT[]),
            TRY_CAST(json_extract_string(scalars::VARCHAR, '$[4]') AS BIGINT[]),
            TRY_CAST(json_extract_string(scalars::VARCHAR, '$[5]') AS BIGINT[])
        )
    )
    WHEN op_name IN ('aten::mm', 'aten::bmm') THEN lib._matmul_flops(lib._shape_of(shapes, '$[0]'), lib._shape_of(shapes, '$[1]'))
    WHEN op_name IN ('aten::addmm', 'aten::baddbmm') THEN lib._matmul_flops(lib._shape_of(shapes, '$[1]'), lib._shape_of(shapes, '$[2]'))
    WHEN op_name IN ('aten::mul', 'aten::add') AND shapes IS NOT NULL THEN CASE
        WHEN len(lib._shape_of(shapes, '$[0]')) > 0 THEN TRY_CAST(list_product(lib._shape_of(shapes, '$[0]')) AS BIGINT)
        ELSE 1
    END
END
