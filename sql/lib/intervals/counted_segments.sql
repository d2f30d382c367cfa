-- Number of running pieces of each kind between consecutive changes, from a sweep over the pieces of each rank.
--
-- The counters of all kinds are packed into one number, with units 1, 2^13, 2^26 and 2^39: a running sum of integers
-- below 2^53 is exact. Time inside two windows counts twice, as it does in overlapping steps.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib.counted_segments(
    -- Name of a relation with run, rank, ts, end_ts, unit (DOUBLE) and window_unit, which is 1 if the piece is a
    -- window.
    piece_rows
) AS TABLE
-- Columns:
--   run      VARCHAR      Run name.
--   rank     INTEGER      Rank of the process.
--   at_ts    BIGINT [ns]  Start of the segment.
--   running  BIGINT [1]   Packed counters.
--   ns       DOUBLE [ns]  Length of the segment times the number of windows that contain it; a whole number.
WITH
    _bounds AS (
        SELECT p.run, p.rank, p.ts AS at_ts, p.unit, p.window_unit FROM query_table(piece_rows) AS p
        UNION ALL
        SELECT p.run, p.rank, p.end_ts, -p.unit, -p.window_unit FROM query_table(piece_rows) AS p
    ),
    _changes AS (
        SELECT b.run, b.rank, b.at_ts, sum(b.unit) AS change, sum(b.window_unit)::DOUBLE AS window_change
        FROM _bounds AS b
        GROUP BY b.run, b.rank, b.at_ts
    )
SELECT
    c.run,
    c.rank,
    c.at_ts,
    (sum(c.change) OVER sweep)::BIGINT AS running,
    coalesce(lead(c.at_ts) OVER sweep - c.at_ts, 0) * sum(c.window_change) OVER sweep AS ns
FROM _changes AS c
WINDOW sweep AS (PARTITION BY c.run, c.rank ORDER BY c.at_ts ROWS UNBOUNDED PRECEDING)
