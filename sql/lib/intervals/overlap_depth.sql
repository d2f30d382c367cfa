-- Number of running intervals over time: elementary segments between consecutive starts and ends.
--
-- Segments of depth 0 between the first start and the last end are included; intervals of zero length create no
-- segment.
CREATE OR REPLACE MACRO lib.overlap_depth(
    -- Name of a relation with lane, ts, dur; lane is any grouping key, such as a struct.
    spans
) AS TABLE
-- Columns:
--   lane   ANY             Grouping key.
--   ts     BIGINT [ns]     Start of the segment.
--   dur    BIGINT [ns]     Length of the segment.
--   depth  BIGINT [count]  Number of running intervals.
WITH
    _bounds AS (
        SELECT s.lane, s.ts AS bound_ts, 1 AS change FROM query_table(spans) AS s
        UNION ALL
        SELECT s.lane, s.ts + s.dur, -1 FROM query_table(spans) AS s
    ),
    _changes AS (
        SELECT b.lane, b.bound_ts, sum(b.change) AS change
        FROM _bounds AS b
        GROUP BY b.lane, b.bound_ts
    ),
    _segments AS (
        SELECT
            c.lane,
            c.bound_ts,
            lead(c.bound_ts) OVER (PARTITION BY c.lane ORDER BY c.bound_ts) AS next_ts,
            sum(c.change) OVER (PARTITION BY c.lane ORDER BY c.bound_ts ROWS UNBOUNDED PRECEDING) AS depth
        FROM _changes AS c
    )
SELECT g.lane AS lane, g.bound_ts AS ts, g.next_ts - g.bound_ts AS dur, g.depth::BIGINT AS depth
FROM _segments AS g
WHERE g.next_ts IS NOT NULL
