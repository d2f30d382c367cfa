-- Device activity of the requested runs, ranks and steps, without synchronizations and without operations of
-- impossible duration.
--
-- By default, the last profiler step of a run with two or more steps is excluded, because profilers stop in the
-- middle of that step.
CREATE OR REPLACE MACRO lib.scoped_gpu_ops(
    runs,
    ranks,
    steps,
    include_last_profiler_step
) AS TABLE
-- Columns: those of gpu_ops.
SELECT g.*
FROM gpu_ops AS g
WHERE
    g.class <> 'sync'
    AND NOT g.is_suspect
    AND lib.is_requested(runs, g.run)
    AND lib.is_requested(ranks, g.rank)
    AND lib.is_requested(steps, g.step)
    AND (include_last_profiler_step OR NOT g.in_last_step)
