-- Ranks with device activity.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib.device_ranks(
    -- Runs to include; NULL means every run.
    runs,
    -- Ranks to include; NULL means every rank.
    ranks
) AS TABLE
-- Columns:
--   run   VARCHAR  Run name.
--   rank  INTEGER  Rank of the process.
SELECT DISTINCT g.run, g.rank
FROM gpu_ops AS g
WHERE lib.is_requested(runs, g.run) AND lib.is_requested(ranks, g.rank)
