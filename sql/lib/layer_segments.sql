-- Which of several layers of activity counts at each moment, lane by lane: of those that run, the lowest.
--
-- One sweep over all starts and ends with a counter per layer. Of layer 0 only the bounds count: they
-- cut, and nothing runs in them.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib.layer_segments(
    -- Name of a relation with lane, layer (0 to 4), ts, dur; lane is any grouping key, a struct for instance.
    spans
) AS TABLE
-- Columns:
--   lane   ANY          The grouping key.
--   ts     BIGINT [ns]  Start of the segment.
--   dur    BIGINT [ns]  Length of the segment.
--   layer  INTEGER      Lowest layer that runs; 0: none.
WITH
    _bounds AS (
        SELECT s.lane, s.layer, s.ts AS bound_ts, 1 AS change FROM query_table(spans) AS s
        UNION ALL
        SELECT s.lane, s.layer, s.ts + s.dur, -1 FROM query_table(spans) AS s
    ),
    _changes AS (
        SELECT
            b.lane,
            b.bound_ts,
            -- Summed up once more below, which costs twice as much for the 128-bit numbers that sums are.
            sum(CASE WHEN b.layer = 1 THEN b.change ELSE 0 END)::INTEGER AS first,
            sum(CASE WHEN b.layer = 2 THEN b.change ELSE 0 END)::INTEGER AS second,
            sum(CASE WHEN b.layer = 3 THEN b.change ELSE 0 END)::INTEGER AS third,
            sum(CASE WHEN b.layer = 4 THEN b.change ELSE 0 END)::INTEGER AS fourth
        FROM _bounds AS b
        GROUP BY b.lane, b.bound_ts
    ),
    _segments AS (
        SELECT
            c.lane,
            c.bound_ts,
            lead(c.bound_ts) OVER _sweep AS next_ts,
            CASE
                WHEN sum(c.first) OVER _sweep > 0 THEN 1
                WHEN sum(c.second) OVER _sweep > 0 THEN 2
                WHEN sum(c.third) OVER _sweep > 0 THEN 3
                WHEN sum(c.fourth) OVER _sweep > 0 THEN 4
                ELSE 0
            END AS layer
        FROM _changes AS c
        WINDOW _sweep AS (PARTITION BY c.lane ORDER BY c.bound_ts)
    )
SELECT g.lane AS lane, g.bound_ts AS ts, g.next_ts - g.bound_ts AS dur, g.layer AS layer
FROM _segments AS g
WHERE g.next_ts IS NOT NULL
