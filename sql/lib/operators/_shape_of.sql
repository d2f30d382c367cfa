-- One shape from a list of input shapes.
CREATE OR REPLACE MACRO lib._shape_of(
    -- Input shapes as JSON: a list with a list of sizes for each input.
    shapes,
    -- JSON path of the shape: '$[0]' is the first.
    json_path
) AS
-- Returns: BIGINT[]  Sizes; NULL if there is no such shape.
TRY_CAST(json_extract(shapes::VARCHAR, json_path::VARCHAR) AS BIGINT[])
