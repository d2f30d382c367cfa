-- Input shapes as torch's profiler shows them: without shapes for a list of tensors.
CREATE OR REPLACE MACRO lib._counted_shapes(
    -- Input shapes as JSON; NULL: none.
    shapes,
    -- Input types as JSON; NULL: unknown.
    types
) AS
-- Returns: VARCHAR  Shapes as JSON, with [] for each list of tensors.
CASE
    WHEN shapes IS NOT NULL AND contains(types, 'TensorList') THEN '[' || array_to_string(list_transform(
        coalesce(list_zip(json_extract(shapes::VARCHAR, '$[*]')::VARCHAR[], json_extract_string(types::VARCHAR, '$[*]')::VARCHAR[]), []),
        lambda z: CASE WHEN z[2] = 'TensorList' THEN '[]' ELSE z[1] END
    ), ',') || ']'
    ELSE coalesce(shapes::VARCHAR, '[]')
END
