-- Pairs of intervals in the same lane in which one interval encloses the other.
--
-- Time is divided into 4,096 cells. An enclosing interval covers at most 24 nodes of the binary tree over the cells,
-- and an enclosed interval starts in 13 nodes. An equality join finds the pairs. The cost grows with the number of
-- intervals and their actual nesting depth, not with the number of possible pairs.
CREATE OR REPLACE MACRO lib._enclosing_intervals(
    -- Name of a relation with lane, id, ts, dur: possible enclosed intervals.
    inner_spans,
    -- Name of a relation with lane, id, ts, dur: possible enclosing intervals.
    outer_spans
) AS TABLE
-- Columns:
--   inner_id   BIGINT       Id of the enclosed interval.
--   outer_id   BIGINT       Id of the enclosing interval; both intervals may start or end at the same time.
--   lane       ANY          Lane of both intervals.
--   outer_ts   BIGINT [ns]  Start of the enclosing interval.
--   outer_dur  BIGINT [ns]  Length of the enclosing interval.
WITH
    _extents AS (
        SELECT o.lane, min(o.ts) AS first_ts, max(o.ts + o.dur) - min(o.ts) + 1 AS extent
        FROM query_table(outer_spans) AS o
        GROUP BY o.lane
    ),
    _levels AS (
        SELECT unnest(range(13)) AS level
    ),
    _covers AS (
        SELECT
            o.lane,
            o.id,
            o.ts,
            o.dur,
            l.level,
            -- ceil(first cell / 2^level), floor((last cell + 1) / 2^level): the cells not covered at lower levels.
            ((o.ts - x.first_ts)::HUGEINT * 4096 // x.extent + (1 << l.level) - 1) // (1 << l.level) AS low,
            ((o.ts + o.dur - x.first_ts)::HUGEINT * 4096 // x.extent + 1) // (1 << l.level) AS high
        FROM query_table(outer_spans) AS o
        JOIN _extents AS x ON x.lane IS NOT DISTINCT FROM o.lane
        CROSS JOIN _levels AS l
    ),
    _nodes AS (
        SELECT c.lane, c.id, c.ts, c.dur, c.level, c.low AS node
        FROM _covers AS c
        WHERE c.low < c.high AND c.low % 2 = 1
        UNION ALL
        SELECT c.lane, c.id, c.ts, c.dur, c.level, c.high - 1
        FROM _covers AS c
        WHERE c.low < c.high AND c.high % 2 = 1
    ),
    _starts AS (
        SELECT
            i.lane,
            i.id,
            i.ts,
            i.ts + i.dur AS end_ts,
            l.level,
            ((i.ts - x.first_ts)::HUGEINT * 4096 // x.extent) // (1 << l.level) AS node
        FROM query_table(inner_spans) AS i
        JOIN _extents AS x ON x.lane IS NOT DISTINCT FROM i.lane
        CROSS JOIN _levels AS l
        WHERE i.ts >= x.first_ts AND i.ts + i.dur < x.first_ts + x.extent
    )
SELECT s.id AS inner_id, n.id AS outer_id, n.lane AS lane, n.ts AS outer_ts, n.dur AS outer_dur
FROM _starts AS s
JOIN _nodes AS n
    ON n.lane IS NOT DISTINCT FROM s.lane
    AND n.level = s.level
    AND n.node = s.node
    AND n.ts <= s.ts
    AND n.ts + n.dur >= s.end_ts
