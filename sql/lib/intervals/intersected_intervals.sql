-- Intersection of two sets of intervals, lane by lane.
--
-- One sweep over all starts and ends keeps a counter per set. It needs no range join, so it costs no more than a
-- sort, no matter how the intervals overlap. Touching pieces are merged.
CREATE OR REPLACE MACRO lib.intersected_intervals(
    -- Name of a relation with lane, ts, dur.
    left_spans,
    -- Name of a second relation with the same columns and the same type of lane.
    right_spans
) AS TABLE
-- Columns:
--   lane  ANY          Grouping key.
--   ts    BIGINT [ns]  Start of the intersection.
--   dur   BIGINT [ns]  Length of the intersection.
WITH
    _bounds AS (
        SELECT l.lane, l.ts AS bound_ts, 1 AS left_change, 0 AS right_change FROM query_table(left_spans) AS l
        UNION ALL
        SELECT l.lane, l.ts + l.dur, -1, 0 FROM query_table(left_spans) AS l
        UNION ALL
        SELECT r.lane, r.ts, 0, 1 FROM query_table(right_spans) AS r
        UNION ALL
        SELECT r.lane, r.ts + r.dur, 0, -1 FROM query_table(right_spans) AS r
    ),
    _changes AS (
        SELECT b.lane, b.bound_ts, sum(b.left_change) AS left_change, sum(b.right_change) AS right_change
        FROM _bounds AS b
        GROUP BY b.lane, b.bound_ts
    ),
    _segments AS (
        SELECT
            c.lane,
            c.bound_ts,
            lead(c.bound_ts) OVER _sweep AS next_ts,
            sum(c.left_change) OVER _sweep > 0 AND sum(c.right_change) OVER _sweep > 0 AS both_run
        FROM _changes AS c
        WINDOW _sweep AS (PARTITION BY c.lane ORDER BY c.bound_ts)
    ),
    _pieces AS (
        SELECT
            g.lane,
            g.bound_ts,
            g.next_ts,
            g.both_run,
            count_if(NOT g.both_run) OVER (PARTITION BY g.lane ORDER BY g.bound_ts) AS piece
        FROM _segments AS g
    )
SELECT p.lane AS lane, min(p.bound_ts) AS ts, max(p.next_ts) - min(p.bound_ts) AS dur
FROM _pieces AS p
WHERE p.both_run
GROUP BY p.lane, p.piece
