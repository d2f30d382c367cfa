-- Segments of time with the lowest activity layer that is running, lane by lane.
--
-- One sweep over all starts and ends with a counter per layer. Four counters are packed into one DOUBLE, because a
-- running sum of integers below 2^53 is exact. Layer 0 provides only bounds, at which segments are cut.
--
-- Status: stable
-- Since: 0.1
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
    _units AS (
        SELECT
            s.lane, s.ts, s.ts + s.dur AS end_ts,
            CASE WHEN s.layer BETWEEN 1 AND 4 THEN 1::BIGINT << (13 * (s.layer - 1)) ELSE 0 END AS low,
            CASE WHEN s.layer > 4 THEN 1::BIGINT << (13 * (s.layer - 5)) ELSE 0 END AS high
        FROM query_table(spans) AS s
    ),
    _bounds AS (
        SELECT u.lane, u.ts AS bound_ts, u.low, u.high FROM _units AS u
        UNION ALL
        SELECT u.lane, u.end_ts, -u.low, -u.high FROM _units AS u
    ),
    _changes AS (
        SELECT b.lane, b.bound_ts, sum(b.low)::DOUBLE AS low, sum(b.high)::DOUBLE AS high
        FROM _bounds AS b
        GROUP BY b.lane, b.bound_ts
    ),
    _segments AS (
        SELECT
            c.lane, c.bound_ts,
            lead(c.bound_ts) OVER sweep AS next_ts,
            (sum(c.low) OVER sweep)::BIGINT AS low,
            (sum(c.high) OVER sweep)::BIGINT AS high
        FROM _changes AS c
        WINDOW sweep AS (PARTITION BY c.lane ORDER BY c.bound_ts ROWS UNBOUNDED PRECEDING)
    )
SELECT
    g.lane AS lane, g.bound_ts AS ts, g.next_ts - g.bound_ts AS dur,
    CASE
        WHEN g.low & 8191 > 0 THEN 1
        WHEN (g.low >> 13) & 8191 > 0 THEN 2
        WHEN (g.low >> 26) & 8191 > 0 THEN 3
        WHEN g.low >> 39 > 0 THEN 4
        WHEN g.high & 8191 > 0 THEN 5
        WHEN (g.high >> 13) & 8191 > 0 THEN 6
        WHEN (g.high >> 26) & 8191 > 0 THEN 7
        WHEN g.high >> 39 > 0 THEN 8
        ELSE 0
    END AS layer
FROM _segments AS g
WHERE g.next_ts IS NOT NULL
