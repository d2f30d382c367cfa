-- One shape from a list of input shapes.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib._shape_of(
    -- Input shapes as JSON: a list with a list of sizes for each input.
    shapes,
    -- JSON path of the shape: '$[0]' is the first.
    json_path
) AS
-- Returns: BIGINT[]  Sizes; NULL if there is no such shape.
TRY_CAST(json_extract(shapes::VARCHAR, json_path::VARCHAR) AS BIGINT[])
