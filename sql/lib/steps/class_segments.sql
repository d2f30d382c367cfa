-- Segments of time with the classes of device activity that are running, lane by lane.
--
-- One sweep over all starts and ends with a counter per class. Busy time, overlap and exposed time follow from the
-- segments. Segments without activity are included; synchronizations are not activity. The last row of a lane marks
-- its end: it has zero length and no activity.
CREATE OR REPLACE MACRO lib.class_segments(
    -- Name of a relation with lane, class, ts, dur.
    spans
) AS TABLE
-- Columns:
--   lane           ANY          Grouping key.
--   ts             BIGINT [ns]  Start of the segment.
--   dur            BIGINT [ns]  Length of the segment.
--   computes       BOOLEAN      Whether computation is running.
--   communicates   BOOLEAN      Whether communication is running.
--   copies         BOOLEAN      Whether a copy or memset is running.
WITH
    _bounds AS (
        SELECT s.lane, s.class, s.ts AS bound_ts, 1 AS change FROM query_table(spans) AS s
        UNION ALL
        SELECT s.lane, s.class, s.ts + s.dur, -1 FROM query_table(spans) AS s
    ),
    _changes AS (
        SELECT
            b.lane,
            b.bound_ts,
            -- Cast to INTEGER, because sums are 128 bits wide, which doubles the cost of the next sum.
            sum(CASE WHEN b.class = 'computation' THEN b.change ELSE 0 END)::INTEGER AS computation,
            sum(CASE WHEN b.class = 'communication' THEN b.change ELSE 0 END)::INTEGER AS communication,
            sum(CASE WHEN b.class = 'memory' THEN b.change ELSE 0 END)::INTEGER AS memory
        FROM _bounds AS b
        GROUP BY b.lane, b.bound_ts
    ),
    _segments AS (
        SELECT
            c.lane,
            c.bound_ts,
            lead(c.bound_ts) OVER _sweep AS next_ts,
            sum(c.computation) OVER _sweep > 0 AS computes,
            sum(c.communication) OVER _sweep > 0 AS communicates,
            sum(c.memory) OVER _sweep > 0 AS copies
        FROM _changes AS c
        WINDOW _sweep AS (PARTITION BY c.lane ORDER BY c.bound_ts)
    )
SELECT
    g.lane AS lane,
    g.bound_ts AS ts,
    coalesce(g.next_ts - g.bound_ts, 0) AS dur,
    g.computes AS computes,
    g.communicates AS communicates,
    g.copies AS copies
FROM _segments AS g
