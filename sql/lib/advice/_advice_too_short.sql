-- Captures that are too short for a recommendation: fewer than 20 events, at most one operator, no device activity.
--
-- The profiler itself writes about 10 events. If its schedule is cut off, the last capture has few others.
CREATE OR REPLACE MACRO lib._advice_too_short(
    runs,
    ranks,
    -- Name of a relation with the columns of lib.device_ranks.
    with_device
) AS TABLE
-- Columns:
--   run          VARCHAR         Run name.
--   rank         INTEGER         Rank of the process.
--   event_count  BIGINT [count]  Number of events in the rank's files.
SELECT k.run, k.rank, k.event_count
FROM ranks AS k
ANTI JOIN query_table(with_device) AS d ON d.run = k.run AND d.rank = k.rank
LEFT JOIN cpu_ops AS c ON c.run = k.run AND c.rank = k.rank
WHERE k.event_count < 20 AND lib.is_requested(runs, k.run) AND lib.is_requested(ranks, k.rank)
GROUP BY k.run, k.rank, k.event_count
HAVING count(c.event_id) <= 1
