-- Gaps between the intervals of a lane, during which no interval of the lane is running.
--
-- Time before the first and after the last interval is excluded; touching intervals leave no gap.
CREATE OR REPLACE MACRO lib.gaps(
    -- Name of a relation with lane, ts, dur; lane is any grouping key, such as a struct.
    spans
) AS TABLE
-- Columns:
--   lane  ANY          Grouping key.
--   ts    BIGINT [ns]  Start of the gap.
--   dur   BIGINT [ns]  Length of the gap.
WITH
    _bounds AS (
        SELECT
            s.lane,
            s.ts AS next_ts,
            max(s.ts + s.dur) OVER (
                PARTITION BY s.lane ORDER BY s.ts, s.dur ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ) AS ended
        FROM query_table(spans) AS s
    )
SELECT b.lane AS lane, b.ended AS ts, b.next_ts - b.ended AS dur
FROM _bounds AS b
WHERE b.next_ts > b.ended
