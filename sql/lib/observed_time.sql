-- From when to when each rank was observed: its host operators, runtime calls and device activity.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib.observed_time(
    -- Runs to include; NULL means every run.
    runs,
    -- Ranks to include; NULL means every rank.
    ranks,
    -- Profiler steps to include; NULL means every step and what lies outside of steps.
    steps,
    -- Whether to include the last profiler step.
    include_last_profiler_step
) AS TABLE
-- Columns:
--   run       VARCHAR      Run name.
--   rank      INTEGER      Rank of the process.
--   ts        BIGINT [ns]  Start of the first event.
--   dur       BIGINT [ns]  From there to the last end.
WITH
    _spans AS (
        SELECT g.run, g.rank, min(g.ts) AS first_start, max(g.ts + g.dur) AS last_end
        FROM lib.scoped_gpu_ops(runs, ranks, steps, include_last_profiler_step) AS g
        GROUP BY g.run, g.rank
        UNION ALL
        SELECT c.run, c.rank, min(c.ts), max(c.ts + c.dur)
        FROM cpu_ops AS c
        WHERE
            lib.wanted(runs, c.run)
            AND lib.wanted(ranks, c.rank)
            AND lib.wanted(steps, c.step)
            AND (include_last_profiler_step OR NOT c.in_last_step)
        GROUP BY c.run, c.rank
        UNION ALL
        SELECT c.run, c.rank, min(c.ts), max(c.ts + c.dur)
        FROM runtime_calls AS c
        WHERE
            lib.wanted(runs, c.run)
            AND lib.wanted(ranks, c.rank)
            AND lib.wanted(steps, c.step)
            AND (include_last_profiler_step OR NOT c.in_last_step)
        GROUP BY c.run, c.rank
    )
SELECT s.run, s.rank, min(s.first_start) AS ts, max(s.last_end) - min(s.first_start) AS dur
FROM _spans AS s
GROUP BY s.run, s.rank
