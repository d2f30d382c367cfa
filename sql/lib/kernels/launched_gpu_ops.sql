-- Device activity in scope, each operation in the step that launched it.
--
-- Operations launched before the capture began may run into its first steps, but belong to none of them, because
-- their launch is not in the trace. If a rank has no launches at all, an operation belongs to the step in which it
-- starts.
CREATE OR REPLACE MACRO lib.launched_gpu_ops(
    runs,
    ranks,
    steps,
    include_last_profiler_step
) AS TABLE
-- Columns: those of gpu_ops.
WITH
    _launching AS (
        SELECT g.run, g.rank
        FROM gpu_ops AS g
        WHERE g.launch_id IS NOT NULL AND lib.is_requested(runs, g.run) AND lib.is_requested(ranks, g.rank)
        GROUP BY g.run, g.rank
    ),
    _placed AS (
        SELECT g.* REPLACE (CASE WHEN g.launch_id IS NOT NULL OR n.run IS NULL THEN g.step END AS step)
        FROM lib.scoped_gpu_ops(runs, ranks, NULL, include_last_profiler_step) AS g
        LEFT JOIN _launching AS n ON n.run = g.run AND n.rank = g.rank
    )
SELECT p.*
FROM _placed AS p
WHERE lib.is_requested(steps, p.step)
