-- One shape of a list of input shapes.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib._shape_of(
    -- Input shapes as JSON: a list with a list of sizes for each input.
    shapes,
    -- Which of them, as a JSON path: '$[0]' is the first.
    json_path
) AS
-- Returns: BIGINT[]  Its sizes; NULL where there is none.
TRY_CAST(json_extract(shapes::VARCHAR, json_path::VARCHAR) AS BIGINT[])
