-- Segments of time with the lowest activity layer that is running, lane by lane.
--
-- Segments tile the time from the first start to the last end. Layer 0 provides only bounds, at which segments are cut;
-- consecutive segments may have the same layer.
CREATE OR REPLACE MACRO lib.layer_segments(
    -- Name of a relation with lane, layer (0 to 8), ts, dur; lane is any grouping key, such as a struct.
    spans
) AS TABLE
-- Columns:
--   lane   ANY          Grouping key.
--   ts     BIGINT [ns]  Start of the segment.
--   dur    BIGINT [ns]  Length of the segment.
--   layer  INTEGER      Lowest running layer; 0: none.
WITH
    _layer_pieces AS (
        SELECT s.lane, s.ts, s.ts + s.dur AS end_ts, s.layer, 0 AS count_1, 0 AS count_2 FROM query_table(spans) AS s
    )
SELECT g.lane AS lane, g.ts AS ts, g.dur AS dur, g.layer AS layer
FROM lib.counted_segments('_layer_pieces') AS g
-- The last segment of a lane has no length.
WHERE g.dur > 0
