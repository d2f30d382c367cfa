-- Communication kernels of the requested runs, ranks and steps. Kernels matched with them may be outside that scope.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib.scoped_collectives(
    -- Runs to include; NULL means every run.
    runs,
    -- Ranks to include; NULL means every rank.
    ranks,
    -- Profiler steps to include; NULL means every step and all activity outside steps.
    steps,
    -- Whether to include the last profiler step.
    include_last_profiler_step
) AS TABLE
-- Columns: those of matched_collectives.
SELECT m.*
FROM matched_collectives AS m
WHERE
    lib.is_requested(runs, m.run)
    AND lib.is_requested(ranks, m.rank)
    AND lib.is_requested(steps, m.step)
    AND (include_last_profiler_step OR NOT m.in_last_step)
