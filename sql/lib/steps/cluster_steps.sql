-- Steps of a cluster's ranks, as measured by MindSpore's profiler, or derived from the events of the trace.
CREATE OR REPLACE MACRO lib.cluster_steps(
    runs,
    ranks,
    -- Steps to include; NULL means every step.
    steps,
    -- Whether to include the last profiler step. MindSpore steps are complete and always included.
    include_last_profiler_step
) AS TABLE
-- Columns: those of cluster_step_trace_v1.
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
