-- Ranks that the scenario "no late rank" makes as fast as their peers: stragglers and intermittent stragglers or, if
-- a run has neither, suspected stragglers.
CREATE OR REPLACE MACRO lib._replay_stragglers(
    runs
) AS TABLE
-- Columns:
--   run   VARCHAR  Run name.
--   rank  INTEGER  Rank of the process.
WITH
    _verdicts AS (
        SELECT j.run, j.rank, j.verdict = 'suspected' AS is_suspected
        FROM lib.rank_verdicts(runs) AS j
        WHERE j.verdict IN ('straggler', 'intermittent', 'suspected')
    )
SELECT v.run, v.rank
FROM _verdicts AS v
QUALIFY NOT v.is_suspected OR bool_and(v.is_suspected) OVER (PARTITION BY v.run)
