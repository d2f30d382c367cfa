-- Correction from each rank's clock to the shared clock, as estimated from matched collectives: subtract
-- ahead_ns + round(drift * (ts - mid_ts)).
CREATE OR REPLACE MACRO lib.clock_offsets(
    runs
) AS TABLE
-- Columns:
--   run       VARCHAR      Run name.
--   rank      INTEGER      Rank of the process.
--   span      INTEGER      Recording of the rank.
--   ahead_ns  BIGINT [ns]  How far the clock is ahead in the middle of the capture; 0 without a correction.
--   drift     DOUBLE [1]   Clock gain per unit of time; 0 without a correction.
--   mid_ts    BIGINT [ns]  Middle of the reference rank's capture, on this rank's clock.
WITH
    _estimates AS (
        SELECT
            m.run, m.rank, m.span,
            max(CASE WHEN m.clock_is_applied THEN m.clock_offset_ns END) AS ahead_ns,
            max(CASE WHEN m.clock_is_applied THEN m.clock_drift END) AS drift,
            max(CASE WHEN m.clock_is_applied THEN m.clock_mid_ts END) AS mid_ts
        FROM matched_collectives AS m
        WHERE lib.is_requested(runs, m.run)
        GROUP BY m.run, m.rank, m.span
    )
SELECT
    k.run AS run, k.rank AS rank, k.span AS span, coalesce(e.ahead_ns, 0) AS ahead_ns, coalesce(e.drift, 0) AS drift, coalesce(e.mid_ts, 0) AS mid_ts
FROM rank_spans AS k
LEFT JOIN _estimates AS e ON e.run = k.run AND e.rank = k.rank AND e.span = k.span
WHERE lib.is_requested(runs, k.run)
