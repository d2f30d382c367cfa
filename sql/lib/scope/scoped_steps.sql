-- Steps of the requested runs, ranks and steps, with their parts.
CREATE OR REPLACE MACRO lib.scoped_steps(
    runs,
    ranks,
    -- Profiler steps to include; NULL means every step, or the whole trace if it has no steps.
    steps,
    include_last_profiler_step
) AS TABLE
-- Columns: those of step_parts.
SELECT p.*
FROM step_parts AS p
JOIN rank_spans AS k ON k.run = p.run AND k.rank = p.rank AND k.span = p.span
WHERE
    NOT p.is_common
    AND lib.is_requested(runs, p.run)
    AND lib.is_requested(ranks, p.rank)
    AND lib.is_requested(steps, p.step)
    AND (include_last_profiler_step OR NOT (p.is_last AND k.drops_last_step))
