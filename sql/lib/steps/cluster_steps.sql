-- Steps of a cluster's ranks, as measured by MindSpore's profiler, or derived from the events of the trace.
--
-- Derived steps are the rows of lib.device_steps. The forward pass begins with the first computation that is launched
-- in the step outside the backward pass and the optimizer. The backward pass ends with the last computation launched
-- under the autograd engine, a backward operator, or an annotation that contains "backward".
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
    ),
    _ops AS MATERIALIZED (
        SELECT g.run, g.rank, g.event_id, g.step, g.class, g.launch_id, g.ts, g.dur
        FROM lib.launched_gpu_ops(runs, ranks, NULL, true) AS g
        WHERE g.class IN ('computation', 'communication')
    ),
    _windows AS MATERIALIZED (
        SELECT d.*
        FROM lib.device_steps(runs, ranks, NULL, true) AS d
        SEMI JOIN _ops AS o ON o.run = d.run AND o.rank = d.rank
        WHERE d.step IS NOT NULL
    ),
    -- On the host, one lane per thread: spans of the backward pass and the optimizer, and launches.
    _passes AS (
        SELECT c.run, c.rank, c.pid, c.tid, c.ts, c.ts + c.dur AS end_ts, true AS is_backward
        FROM cpu_ops AS c
        WHERE
            (starts_with(c.name, 'autograd::engine::evaluate_function') OR c.fwd_thread_id > 0 OR c.fwd_op_id IS NOT NULL)
            AND lib.is_requested(runs, c.run) AND lib.is_requested(ranks, c.rank)
        UNION ALL
        SELECT a.run, a.rank, a.pid, a.tid, a.ts, a.ts + a.dur, NOT starts_with(a.name, 'Optimizer.')
        FROM annotations AS a
        WHERE
            NOT a.on_gpu AND (contains(lower(a.name), 'backward') OR starts_with(a.name, 'Optimizer.'))
            AND lib.is_requested(runs, a.run) AND lib.is_requested(ranks, a.rank)
    ),
    _thread_events AS (
        SELECT p.run, p.rank, p.pid, p.tid, p.ts, p.is_backward, p.end_ts, NULL::BIGINT AS launch_id FROM _passes AS p
        UNION ALL
        SELECT c.run, c.rank, c.pid, c.tid, c.ts, NULL, NULL, c.event_id
        FROM runtime_calls AS c
        WHERE c.correlation IS NOT NULL AND lib.is_requested(runs, c.run) AND lib.is_requested(ranks, c.rank)
    ),
    _launches AS (
        SELECT
            t.run, t.rank, t.launch_id,
            coalesce(max(CASE WHEN t.is_backward THEN t.end_ts END) OVER so_far > t.ts, false) AS is_backward,
            coalesce(max(CASE WHEN NOT t.is_backward THEN t.end_ts END) OVER so_far > t.ts, false) AS is_optimizer
        FROM _thread_events AS t
        WINDOW so_far AS (
            PARTITION BY t.run, t.rank, t.pid, t.tid ORDER BY t.ts, t.launch_id NULLS FIRST ROWS UNBOUNDED PRECEDING
        )
    ),
    _passed AS (
        SELECT
            o.run, o.rank, o.step,
            min(CASE WHEN NOT coalesce(l.is_backward OR l.is_optimizer, false) THEN o.ts END) AS forward_ts,
            max(CASE WHEN l.is_backward THEN o.ts + o.dur END) AS backward_end
        FROM _ops AS o
        LEFT JOIN _launches AS l ON l.run = o.run AND l.rank = o.rank AND l.launch_id = o.launch_id
        WHERE o.class = 'computation' AND o.step IS NOT NULL
        GROUP BY o.run, o.rank, o.step
    ),
    _receiving AS MATERIALIZED (
        SELECT
            m.run, m.rank, m.event_id,
            m.collective = 'recv' OR (m.collective = 'send_recv' AND m.dst_rank = m.rank AND m.src_rank <> m.rank) AS receives,
            -- A coalesced kernel runs several sends and receives.
            m.collective = 'coalesced'
            OR (m.collective = 'send_recv' AND m.dst_rank IS DISTINCT FROM m.rank AND m.src_rank IS DISTINCT FROM m.rank) AS is_untold
        FROM matched_collectives AS m
        WHERE
            m.collective IN ('send', 'recv', 'send_recv', 'coalesced') AND lib.is_requested(runs, m.run)
            AND lib.is_requested(ranks, m.rank)
    ),
    _staged AS (
        SELECT r.run, r.rank, NOT bool_or(r.is_untold) AS is_told
        FROM _receiving AS r
        GROUP BY r.run, r.rank
    ),
    _spans AS (
        SELECT
            o.run, o.rank, o.ts, o.dur,
            CASE WHEN o.class = 'computation' THEN 1 WHEN r.receives THEN 3 ELSE 2 END AS layer
        FROM _ops AS o
        LEFT JOIN _receiving AS r ON r.run = o.run AND r.rank = o.rank AND r.event_id = o.event_id
    ),
    _parts AS (
        SELECT
            p.run, p.rank, p.step,
            sum(CASE WHEN p.layer = 1 THEN p.ns ELSE 0 END)::BIGINT AS computed,
            sum(CASE WHEN p.layer = 2 THEN p.ns ELSE 0 END)::BIGINT AS collective,
            sum(CASE WHEN p.layer = 3 THEN p.ns ELSE 0 END)::BIGINT AS received
        FROM lib.layers_in_steps('_windows', '_spans') AS p
        GROUP BY p.run, p.rank, p.step
    ),
    _anchored AS (
        SELECT
            w.*, coalesce(a.computed, 0) AS computed, coalesce(a.collective, 0) AS collective,
            coalesce(a.received, 0) AS received,
            least(w.to_ts, greatest(w.from_ts, p.forward_ts)) AS forward_ts,
            CASE WHEN p.forward_ts IS NOT NULL AND p.backward_end > p.forward_ts THEN greatest(w.from_ts, p.backward_end) END AS backward_ts,
            coalesce(d.is_told, false) AS is_told
        FROM _windows AS w
        LEFT JOIN _parts AS a ON a.run = w.run AND a.rank = w.rank AND a.step = w.step
        LEFT JOIN _passed AS p ON p.run = w.run AND p.rank = w.rank AND p.step = w.step
        LEFT JOIN _staged AS d ON d.run = w.run AND d.rank = w.rank
    )
SELECT
    m.run, m.rank, m.step, m.total_ns, m.iteration_interval_ns, m.forward_backward_ns, m.tail_ns, m.computation_ns,
    m.communication_alone_ns, m.receive_alone_ns, m.collective_alone_ns, m.stage_ns
FROM _measured AS m
WHERE lib.is_requested(steps, m.step)
UNION ALL
SELECT
    n.run, n.rank, n.step,
    n.to_ts - n.from_ts AS total_ns,
    CASE WHEN n.forward_ts IS NOT NULL THEN n.forward_ts - n.from_ts END AS iteration_interval_ns,
    n.backward_ts - n.forward_ts AS forward_backward_ns,
    n.to_ts - n.backward_ts AS tail_ns,
    n.computed AS computation_ns,
    n.collective + n.received AS communication_alone_ns,
    CASE WHEN n.is_told THEN n.received END AS receive_alone_ns,
    CASE WHEN n.is_told THEN n.collective END AS collective_alone_ns,
    CASE WHEN n.is_told THEN n.to_ts - n.from_ts - n.received END AS stage_ns
FROM _anchored AS n
JOIN rank_spans AS k ON k.run = n.run AND k.rank = n.rank AND k.span = n.span
ANTI JOIN _measured AS m ON m.run = n.run AND m.rank = n.rank
WHERE
    lib.is_requested(steps, n.step)
    AND (include_last_profiler_step OR NOT (n.is_last AND k.drops_last_step))
