-- Profiler steps of each rank: start, duration, and the device work launched in them.
--
-- Only steps on the host are listed, not their copies on the device. The last step is excluded by default because
-- profilers stop in the middle of it. An operation belongs to the step that launched it, regardless of when it runs.
-- Operations without a launch in the trace, most of which were launched before the capture, belong to no step. The
-- unlaunched columns count such operations that start during the step. If a rank has two steps with the same number,
-- both rows contain all device operations of that number.
--
-- Title: Profiler steps
-- Shown: rank, step, ts, dur, is_last, gpu_op_count, gpu_sum_ns
-- Status: stable
-- Since: 0.1
-- Reference: HTA get_profiler_steps
-- Needs: profiler steps (prof.step())
CREATE OR REPLACE MACRO profiler_steps_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false
) AS TABLE
-- Columns:
--   run                  VARCHAR         Run name.
--   rank                 INTEGER         Rank of the process.
--   step                 BIGINT          N of ProfilerStep#N.
--   event_id             BIGINT          event_id of the step.
--   ts                   BIGINT [ns]     Start of the step, relative to the run's first event.
--   dur                  BIGINT [ns]     Duration of the step on the host.
--   is_last              BOOLEAN         Whether this is the rank's last step.
--   gpu_op_count         BIGINT [count]  Number of device operations launched in the step or, if the rank has no launches, started in it.
--   gpu_sum_ns           BIGINT [ns]     Total duration of these operations.
--   unlaunched_op_count  BIGINT [count]  Number of device operations without a launch in the trace that start during the step.
--   unlaunched_busy_ns   BIGINT [ns]     Total duration of the unlaunched operations.
WITH
    ops AS (
        SELECT g.run, g.rank, g.step, count(*) AS gpu_op_count, sum(g.dur)::BIGINT AS gpu_sum_ns
        FROM lib.launched_gpu_ops(runs, ranks, steps, include_last_profiler_step) AS g
        GROUP BY ALL
    ),
    launching AS (
        SELECT DISTINCT g.run, g.rank FROM gpu_ops AS g WHERE g.launch_id IS NOT NULL AND lib.is_requested(runs, g.run) AND lib.is_requested(ranks, g.rank)
    ),
    unlaunched AS (
        SELECT g.run, g.rank, g.step, count(*) AS gpu_op_count, sum(g.dur)::BIGINT AS gpu_sum_ns
        FROM lib.scoped_gpu_ops(runs, ranks, steps, include_last_profiler_step) AS g
        SEMI JOIN launching AS l ON l.run = g.run AND l.rank = g.rank
        WHERE g.launch_id IS NULL
        GROUP BY ALL
    )
SELECT
    s.run,
    s.rank,
    s.step,
    s.event_id,
    s.ts,
    s.dur,
    s.is_last,
    coalesce(o.gpu_op_count, 0) AS gpu_op_count,
    coalesce(o.gpu_sum_ns, 0) AS gpu_sum_ns,
    coalesce(u.gpu_op_count, 0) AS unlaunched_op_count,
    coalesce(u.gpu_sum_ns, 0) AS unlaunched_busy_ns
FROM steps AS s
JOIN rank_spans AS k ON k.run = s.run AND k.rank = s.rank AND k.span = s.span
LEFT JOIN ops AS o ON o.run = s.run AND o.rank = s.rank AND o.step = s.step
LEFT JOIN unlaunched AS u ON u.run = s.run AND u.rank = s.rank AND u.step = s.step
WHERE
    lib.is_requested(runs, s.run)
    AND lib.is_requested(ranks, s.rank)
    AND lib.is_requested(steps, s.step)
    AND (include_last_profiler_step OR NOT (s.is_last AND k.drops_last_step))
ORDER BY s.run, s.rank, s.ts, s.event_id
