-- Lowest running layer and two counters, between consecutive starts and ends, lane by lane.
--
-- First, each piece of a layer loses the time that earlier pieces of its layer cover, so at most one piece of a layer
-- runs at a time, and one bit per layer is enough for any number of concurrent pieces. Then one sweep over all starts
-- and ends adds bits and counts. Running sums of DOUBLE take half the time of running sums of integers, and are exact
-- below 2^53.
CREATE OR REPLACE MACRO lib.counted_segments(
    -- Name of a relation with lane, ts, end_ts, layer, count_1 and count_2. A piece has either a layer from 1 to 8, or
    -- layer 0 and whole numbers that it adds to the counters while it runs. Segments are cut at the start and end of
    -- each piece of layer 0. lane is any grouping key; a number is faster than a struct.
    piece_rows
) AS TABLE
-- Columns:
--   lane      ANY          Grouping key.
--   ts        BIGINT [ns]  Start of the segment.
--   dur       BIGINT [ns]  Length of the segment; the last row of a lane marks its end and has length 0.
--   layer     INTEGER      Lowest running layer; 0: none.
--   layers    INTEGER [1]  All running layers, a bit each: 1 for layer 1, 2 for layer 2, 4 for layer 3, and so on.
--   count_1   BIGINT [1]   Sum of count_1 of the running pieces.
--   count_2   BIGINT [1]   Sum of count_2 of the running pieces.
--   position  BIGINT [1]   Number of starts and ends of pieces of layer 0 so far; several at the same time count once.
WITH
    _disjoint AS MATERIALIZED (
        SELECT
            p.lane, 1 << (p.layer - 1) AS layer_bit, p.end_ts,
            greatest(
                p.ts,
                max(p.end_ts) OVER (PARTITION BY p.lane, p.layer ORDER BY p.ts, p.end_ts DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
            ) AS ts
        FROM query_table(piece_rows) AS p
        WHERE p.layer > 0
    ),
    _bounds AS (
        SELECT d.lane, d.ts AS bound_ts, d.layer_bit AS bits, 0 AS count_1, 0 AS count_2, 0 AS is_bound FROM _disjoint AS d WHERE d.end_ts >= d.ts
        UNION ALL
        SELECT d.lane, d.end_ts, -d.layer_bit, 0, 0, 0 FROM _disjoint AS d WHERE d.end_ts >= d.ts
        UNION ALL
        SELECT p.lane, p.ts, 0, p.count_1, p.count_2, 1 FROM query_table(piece_rows) AS p WHERE p.layer = 0
        UNION ALL
        SELECT p.lane, p.end_ts, 0, -p.count_1, -p.count_2, 1 FROM query_table(piece_rows) AS p WHERE p.layer = 0
    ),
    _changes AS (
        SELECT
            b.lane, b.bound_ts, sum(b.bits)::DOUBLE AS bits, sum(b.count_1)::DOUBLE AS count_1, sum(b.count_2)::DOUBLE AS count_2,
            max(b.is_bound)::DOUBLE AS is_bound
        FROM _bounds AS b
        GROUP BY b.lane, b.bound_ts
    ),
    _segments AS (
        SELECT
            c.lane, c.bound_ts,
            coalesce(lead(c.bound_ts) OVER sweep - c.bound_ts, 0) AS dur,
            (sum(c.bits) OVER sweep)::INTEGER AS bits,
            (sum(c.count_1) OVER sweep)::BIGINT AS count_1,
            (sum(c.count_2) OVER sweep)::BIGINT AS count_2,
            (sum(c.is_bound) OVER sweep)::BIGINT AS position
        FROM _changes AS c
        WINDOW sweep AS (PARTITION BY c.lane ORDER BY c.bound_ts ROWS UNBOUNDED PRECEDING)
    )
SELECT
    g.lane AS lane, g.bound_ts AS ts, g.dur AS dur,
    CASE
        WHEN g.bits & 1 > 0 THEN 1
        WHEN g.bits & 2 > 0 THEN 2
        WHEN g.bits & 4 > 0 THEN 3
        WHEN g.bits & 8 > 0 THEN 4
        WHEN g.bits & 16 > 0 THEN 5
        WHEN g.bits & 32 > 0 THEN 6
        WHEN g.bits & 64 > 0 THEN 7
        WHEN g.bits & 128 > 0 THEN 8
        ELSE 0
    END AS layer,
    g.bits AS layers,
    g.count_1 AS count_1, g.count_2 AS count_2, g.position AS position
FROM _segments AS g
