-- Total idle time that the host causes on each rank, which decides whether rules about single causes lower their
-- thresholds.
--
-- For example, three causes of 6 % each add up to 18 % of step time.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib.advice_late_host(
    -- Name of a relation with the columns of lib.step_sums.
    spans,
    -- Name of a relation with the columns of lib.caused_idle.
    idle
) AS TABLE
-- Columns:
--   run          VARCHAR      Run name.
--   rank         INTEGER      Rank of the process.
--   late_ns      BIGINT [ns]  Idle time before the next operation was launched.
--   is_late      BOOLEAN      Whether late_ns is at least 10 % of step time.
--   least_ns     DOUBLE [ns]  3 % of step time: the minimum for reporting a single cause if is_late.
SELECT
    s.run, s.rank, sum(i.idle_ns)::BIGINT AS late_ns, sum(i.idle_ns) >= 0.1 * s.recorded_ns AS is_late, (0.03 * s.recorded_ns)::DOUBLE AS least_ns
FROM query_table(spans) AS s
JOIN query_table(idle) AS i ON i.run = s.run AND i.rank = s.rank
WHERE i.cause NOT IN ('device queue', 'unrecorded', 'unknown')
GROUP BY s.run, s.rank, s.recorded_ns
