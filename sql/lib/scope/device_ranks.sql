-- Ranks with device activity.
CREATE OR REPLACE MACRO lib.device_ranks(
    runs,
    ranks
) AS TABLE
-- Columns:
--   run   VARCHAR  Run name.
--   rank  INTEGER  Rank of the process.
SELECT DISTINCT g.run, g.rank
FROM gpu_ops AS g
WHERE lib.is_requested(runs, g.run) AND lib.is_requested(ranks, g.rank)
