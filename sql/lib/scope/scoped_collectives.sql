-- Communication kernels of the requested runs, ranks and steps. Kernels matched with them may be outside that scope.
CREATE OR REPLACE MACRO lib.scoped_collectives(
    runs,
    ranks,
    steps,
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
