-- Union of intervals: overlapping and touching intervals are merged into islands.
--
-- An interval starts a new island if all previous intervals have ended before it starts. The comparison uses the
-- running maximum of ends, so a short interval inside a long one does not affect the islands.
CREATE OR REPLACE MACRO lib.merged_intervals(
    -- Name of a relation with lane, ts, dur; lane is any grouping key, such as a struct.
    spans
) AS TABLE
-- Columns:
--   lane        ANY             Grouping key.
--   ts          BIGINT [ns]     Start of the island.
--   dur         BIGINT [ns]     Length of the island.
--   span_count  BIGINT [count]  Number of merged intervals.
WITH
    _intervals AS (
        SELECT s.lane, s.ts, s.ts + s.dur AS end_ts
        FROM query_table(spans) AS s
    ),
    _starts AS (
        SELECT
            i.lane,
            i.ts,
            i.end_ts,
            -- The first interval of a lane has no predecessor, so the comparison is NULL; it starts an island.
            coalesce(i.ts > max(i.end_ts) OVER (
                PARTITION BY i.lane ORDER BY i.ts, i.end_ts ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ), true) AS is_start
        FROM _intervals AS i
    ),
    _islands AS (
        SELECT
            t.lane,
            t.ts,
            t.end_ts,
            -- Equal intervals may be in another order than above, so this frame includes all of them (no ROWS).
            count_if(t.is_start) OVER (PARTITION BY t.lane ORDER BY t.ts, t.end_ts) AS island
        FROM _starts AS t
    )
SELECT
    n.lane AS lane,
    min(n.ts) AS ts,
    max(n.end_ts) - min(n.ts) AS dur,
    count(*) AS span_count
FROM _islands AS n
GROUP BY n.lane, n.island
