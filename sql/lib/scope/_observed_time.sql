-- Time during which each rank was observed, derived from its host operators, runtime calls and device activity.
CREATE OR REPLACE MACRO lib._observed_time(
    runs,
    ranks,
    steps,
    include_last_profiler_step
) AS TABLE
-- Columns:
--   run   VARCHAR      Run name.
--   rank  INTEGER      Rank of the process.
--   ts    BIGINT [ns]  Start of the first event.
--   dur   BIGINT [ns]  Time from the first start to the last end, summed over the rank's recordings.
WITH
    _spans AS (
        SELECT g.run, g.rank, g.span, min(g.ts) AS first_start, max(g.ts + g.dur) AS last_end
        FROM lib.scoped_gpu_ops(runs, ranks, steps, include_last_profiler_step) AS g
        GROUP BY g.run, g.rank, g.span
        UNION ALL
        SELECT h.run, h.rank, lib.span_of(h.event_id), min(h.ts), max(h.ts + h.dur)
        FROM lib.host_events(runs, ranks) AS h
        WHERE
            h.table_name IN ('cpu_ops', 'runtime_calls')
            AND lib.is_requested(steps, h.step)
            AND (include_last_profiler_step OR NOT h.in_last_step)
        GROUP BY h.run, h.rank, lib.span_of(h.event_id)
    ),
    _observed AS (
        SELECT s.run, s.rank, min(s.first_start) AS ts, max(s.last_end) - min(s.first_start) AS dur
        FROM _spans AS s
        GROUP BY s.run, s.rank, s.span
    )
SELECT o.run, o.rank, min(o.ts) AS ts, sum(o.dur)::BIGINT AS dur
FROM _observed AS o
GROUP BY o.run, o.rank
