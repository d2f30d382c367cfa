-- Time in each step during which each activity layer is the lowest one running.
--
-- Layers are those of lib.layer_segments. Time during which no layer runs is not reported.
CREATE OR REPLACE MACRO lib.layers_in_steps(
    -- Name of a relation with the columns of lib.device_steps: steps of a rank do not overlap.
    step_rows,
    -- Name of a relation with run, rank, layer (1 to 8), ts, dur.
    span_rows
) AS TABLE
-- Columns:
--   run    VARCHAR      Run name.
--   rank   INTEGER      Rank of the process.
--   step   BIGINT       Step number.
--   layer  INTEGER      Layer number.
--   ns     BIGINT [ns]  Time during which this layer is the lowest one running.
WITH
    -- One number identifies run and rank: sorting by two columns takes twice as long and uses more memory.
    _lanes AS MATERIALIZED (
        SELECT w.run, w.rank, row_number() OVER (ORDER BY w.run, w.rank) AS lane
        FROM (SELECT DISTINCT d.run, d.rank FROM query_table(step_rows) AS d) AS w
    ),
    _numbered AS MATERIALIZED (
        SELECT l.lane, w.run, w.rank, w.step, w.from_ts, w.to_ts, row_number() OVER (ORDER BY l.lane, w.from_ts, w.step) AS n
        FROM query_table(step_rows) AS w
        JOIN _lanes AS l ON l.run = w.run AND l.rank = w.rank
        WHERE w.to_ts > w.from_ts
    ),
    _bounded AS (
        SELECT l.lane, s.layer, s.ts, s.dur
        FROM query_table(span_rows) AS s
        JOIN _lanes AS l ON l.run = s.run AND l.rank = s.rank
        UNION ALL
        SELECT w.lane, 0, w.from_ts, w.to_ts - w.from_ts FROM _numbered AS w
    ),
    _pieces AS (
        SELECT g.lane, g.ts, g.dur, g.layer, NULL::BIGINT AS n, NULL::BIGINT AS to_ts
        FROM lib.layer_segments('_bounded') AS g
        WHERE g.layer > 0
        UNION ALL
        SELECT w.lane, w.from_ts, 0, 0, w.n, w.to_ts
        FROM _numbered AS w
    ),
    -- The latest step that has begun is given by max, because step numbers and end times increase. last_value would
    -- take five times as long.
    _placed AS (
        SELECT p.ts, p.dur, p.layer, max(p.n) OVER so_far AS n, max(p.to_ts) OVER so_far AS to_ts
        FROM _pieces AS p
        WINDOW so_far AS (PARTITION BY p.lane ORDER BY p.ts, p.layer ROWS UNBOUNDED PRECEDING)
    ),
    _summed AS (
        SELECT d.n, d.layer, sum(d.dur)::BIGINT AS ns
        FROM _placed AS d
        WHERE d.layer > 0 AND d.ts < d.to_ts
        GROUP BY d.n, d.layer
    )
SELECT w.run, w.rank, w.step, s.layer, s.ns
FROM _summed AS s
JOIN _numbered AS w ON w.n = s.n
