-- Steps of a cluster's ranks, as measured by MindSpore's profiler, or derived from the events of the trace.
CREATE OR REPLACE MACRO lib.cluster_steps(
    runs,
    ranks,
    -- Steps to include; NULL means every step.
    steps,
    -- Whether to include the last profiler step. MindSpore steps are complete and always included.
    include_last_profiler_step
) AS TABLE
-- Columns:
--   run                     VARCHAR      Run name.
--   rank                    INTEGER      Rank of the process.
--   step                    BIGINT       Step number.
--   total_ns                BIGINT [ns]  Step duration.
--   iteration_interval_ns   BIGINT [ns]  Time from the end of the previous step to the forward pass.
--   forward_backward_ns     BIGINT [ns]  Duration of the forward and backward pass.
--   tail_ns                 BIGINT [ns]  Time from the end of the backward pass to the end of the step.
--   computation_ns          BIGINT [ns]  Compute time.
--   communication_alone_ns  BIGINT [ns]  Exposed communication time (not overlapped by compute).
--   receive_alone_ns        BIGINT [ns]  Time in receives only, with no compute or other communication; NULL without pipeline stages.
--   collective_alone_ns     BIGINT [ns]  Exposed communication time outside receives; NULL without pipeline stages.
--   stage_ns                BIGINT [ns]  Step duration minus receive-only time; NULL without pipeline stages.
WITH
    _measured AS (
        SELECT s.*
        FROM cluster_step_traces AS s
        WHERE
            s.step IS NOT NULL
            AND s.total_ns IS NOT NULL
            AND lib.is_requested(runs, s.run)
            AND lib.is_requested(ranks, s.rank)
    )
SELECT
    m.run, m.rank, m.step, m.total_ns, m.iteration_interval_ns, m.forward_backward_ns, m.tail_ns, m.computation_ns,
    m.communication_alone_ns, m.receive_alone_ns, m.collective_alone_ns, m.stage_ns
FROM _measured AS m
WHERE lib.is_requested(steps, m.step)
UNION ALL
SELECT
    p.run, p.rank, p.step, p.total_ns, p.iteration_interval_ns, p.forward_backward_ns, p.tail_ns, p.computation_ns,
    p.communication_alone_ns, p.receive_alone_ns, p.collective_alone_ns, p.stage_ns
FROM lib._profiled_steps(runs, ranks) AS p
JOIN rank_spans AS k ON k.run = p.run AND k.rank = p.rank AND k.span = p.span
WHERE
    lib.is_requested(steps, p.step)
    AND (include_last_profiler_step OR NOT (p.is_last AND k.drops_last_step))
    AND NOT EXISTS (FROM _measured AS m WHERE m.run = p.run AND m.rank = p.rank)
