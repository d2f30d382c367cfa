-- Device operations that lib.scoped_gpu_ops excludes because of an impossible duration: their number and recorded
-- duration per rank.
CREATE OR REPLACE MACRO lib._suspect_gpu_ops(
    runs,
    ranks,
    steps,
    include_last_profiler_step
) AS TABLE
-- Columns:
--   run            VARCHAR         Run name.
--   rank           INTEGER         Rank of the process.
--   suspect_count  BIGINT [count]  Device operations with an impossible duration.
--   suspect_ns     BIGINT [ns]     Recorded duration of these operations.
SELECT g.run, g.rank, count(*) AS suspect_count, sum(g.dur)::BIGINT AS suspect_ns
FROM gpu_ops AS g
WHERE
    g.class <> 'sync'
    AND g.is_suspect
    AND lib.is_requested(runs, g.run)
    AND lib.is_requested(ranks, g.rank)
    AND lib.is_requested(steps, g.step)
    AND (include_last_profiler_step OR NOT g.in_last_step)
GROUP BY g.run, g.rank
