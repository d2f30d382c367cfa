-- Cost of each nn.Module in the module tree: host time, device time and memory, forward and backward.
--
-- Instances of a class at the same position in the tree, such as all layers of a model, share a row; with expand, each
-- instance has its own row. Self excludes nested modules; total includes them. Work in autograd's backward pass
-- belongs to the module of its forward operator, in the columns that start with backward. A module called inside the
-- backward pass recomputes its forward pass (activation checkpointing). The time of such a call is part of both the
-- backward columns and the recompute columns, and its path is the same as that of the module's other calls.
--
-- Device operations belong to the module that launched them. Their durations are summed even if they ran concurrently.
-- The row without a path contains work outside modules, including gradient accumulation and the autograd engine.
-- Summed over all rows, forward and backward self times equal the total time of host events and the total duration of
-- device operations. Kernels of graph replays belong to the modules recorded in the graph's capture if the trace was
-- ingested with a capture, otherwise to the module that launches the graph. Ranks without nn.Module calls, recorded or
-- captured, have no rows.
--
-- Title: Cost of modules
-- Shown: rank, device_total_ns, device_pct, path, device_self_ns, call_count, class, backward_device_total_ns, host_total_ns
-- Status: stable
-- Since: 0.1
-- Scope: runs, ranks, steps, include_last_profiler_step; calls belong to the step in which they start
-- Reference: TensorBoard profiler plugin, module view; TraceLens, nn_module latency
-- Needs: nn.Module calls (with_stack)
-- Report: first 1; at most 64 ranks
-- Ranks: independent
-- Chart:
--   mark = "bars"
--   title = "The most expensive modules"
--   notes = [
--     "Self time, summed over all ranks: time in a module, without the modules inside it.",
--     "Backward: the backward pass of its operators, including recomputation.",
--   ]
--   empty = "No module took any time."
--   name = "path"
--   measure = "Self time"
--   legend = "Time"
--   panels.device.device_self_ns = "forward"
--   panels.device.backward_device_self_ns = "backward"
--   panels.host.host_self_ns = "forward"
--   panels.host.backward_host_self_ns = "backward"
--   tooltip.call_count = "Calls"
CREATE OR REPLACE MACRO modules_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false,
    -- Whether each instance has its own row: Block_0 and Block_1 instead of Block.
    expand BOOLEAN := false
) AS TABLE
-- Columns:
--   run                              VARCHAR         Run name.
--   rank                             INTEGER         Rank of the process.
--   path                             VARCHAR         Enclosing modules and the module itself, outermost first, separated by /; NULL for work outside modules.
--   class                            VARCHAR         Class of the module.
--   depth                            BIGINT [1]      Number of enclosing modules.
--   instance_count                   BIGINT [count]  Number of instances that are called, or whose backward pass runs.
--   call_count                       BIGINT [count]  Number of calls outside the backward pass.
--   recompute_count                  BIGINT [count]  Number of calls inside the backward pass.
--   host_self_ns                     BIGINT [ns]     Host time in the module's calls, excluding nested modules.
--   host_total_ns                    BIGINT [ns]     host_self_ns of the module and all nested modules.
--   backward_host_self_ns            BIGINT [ns]     Host time in the backward pass of the module's own operators, including recomputation.
--   backward_host_total_ns           BIGINT [ns]     backward_host_self_ns of the module and all nested modules.
--   recompute_host_ns                BIGINT [ns]     Part of backward_host_total_ns in calls inside the backward pass.
--   device_self_ns                   BIGINT [ns]     Duration of device operations launched in the module's calls, excluding nested modules; NULL for a rank without device activity, as the other times on the device.
--   device_total_ns                  BIGINT [ns]     device_self_ns of the module and all nested modules.
--   replayed_device_ns               BIGINT [ns]     Part of device_total_ns in kernels of graph replays whose modules are known from a capture (graph_matches).
--   backward_device_self_ns          BIGINT [ns]     Duration of device operations launched in the backward pass of the module's own operators, including recomputation.
--   backward_device_total_ns         BIGINT [ns]     backward_device_self_ns of the module and all nested modules.
--   recompute_device_ns              BIGINT [ns]     Part of backward_device_total_ns launched by calls inside the backward pass.
--   device_pct                       DOUBLE [%]      device_total_ns plus backward_device_total_ns, as a share of the total duration of device operations.
--   host_allocated_bytes             BIGINT [bytes]  Host memory allocated in the module's calls, including nested modules; NULL if the trace has no memory events.
--   device_allocated_bytes           BIGINT [bytes]  Device memory allocated in the module's calls, including nested modules; NULL if the trace has no memory events.
--   backward_host_allocated_bytes    BIGINT [bytes]  Host memory allocated in the backward pass of the module's operators, including nested modules and recomputation; NULL if the trace has no memory events.
--   backward_device_allocated_bytes  BIGINT [bytes]  Device memory allocated in the backward pass of the module's operators, including nested modules and recomputation; NULL if the trace has no memory events.
WITH RECURSIVE
    -- lane + event_id identifies an event across runs and ranks.
    lanes AS MATERIALIZED (
        SELECT
            d.run, d.rank, row_number() OVER (ORDER BY d.run, d.rank) << 40 AS lane,
            EXISTS (FROM memory_events AS m WHERE m.run = d.run AND m.rank = d.rank) AS remembers,
            EXISTS (FROM lib.device_ranks(runs, ranks) AS g WHERE g.run = d.run AND g.rank = d.rank) AS has_device
        FROM (
            SELECT DISTINCT p.run, p.rank FROM python_calls AS p WHERE starts_with(p.name, 'nn.Module: ')
            UNION
            SELECT DISTINCT m.run, m.rank FROM graph_matches AS m WHERE m.module_path IS NOT NULL
        ) AS d
        WHERE lib.is_requested(runs, d.run) AND lib.is_requested(ranks, d.rank)
    ),
    -- Operators of the backward pass, with the enclosing autograd operator.
    backward AS MATERIALIZED (
        SELECT l.lane + c.event_id AS op_id, l.lane + c.bwd_op_id AS bwd_op_id
        FROM cpu_ops AS c
        JOIN lanes AS l ON l.run = c.run AND l.rank = c.rank
        WHERE c.bwd_op_id IS NOT NULL
    ),
    -- Autograd operators, with the module of their forward operator.
    gradients AS MATERIALIZED (
        SELECT l.lane + b.event_id AS bwd_op_id, b.depth, l.lane + f.module_id AS module_id
        FROM cpu_ops AS b
        JOIN lanes AS l ON l.run = b.run AND l.rank = b.rank
        LEFT JOIN cpu_ops AS f ON f.run = b.run AND f.rank = b.rank AND f.event_id = b.fwd_op_id
        WHERE b.bwd_op_id = b.event_id
    ),
    calls AS MATERIALIZED (
        SELECT
            l.lane, l.lane + p.event_id AS call_id, l.lane + p.parent_module_id AS parent_id,
            lib.module_name(p.name) AS name, p.ts, p.depth,
            lib.is_requested(steps, p.step) AND (include_last_profiler_step OR NOT p.in_last_step) AS is_wanted,
            g.depth AS bwd_depth
        FROM python_calls AS p
        JOIN lanes AS l ON l.run = p.run AND l.rank = p.rank
        LEFT JOIN backward AS b ON b.op_id = l.lane + p.op_id
        LEFT JOIN gradients AS g ON g.bwd_op_id = b.bwd_op_id
        WHERE starts_with(p.name, 'nn.Module: ')
    ),
    -- A call belongs to the backward pass if no other module call lies between the call and the autograd operator.
    begun AS MATERIALIZED (
        SELECT c.*, coalesce(c.bwd_depth > coalesce(p.depth, -1), false) AS recomputes
        FROM calls AS c
        LEFT JOIN calls AS p ON p.call_id = c.parent_id
    ),
    forward_calls(lane, call_id, name, path_id, parent_path_id) AS (
        SELECT b.lane, b.call_id, b.name, hash(NULL::UBIGINT, b.name), NULL::UBIGINT
        FROM begun AS b
        WHERE b.parent_id IS NULL AND NOT b.recomputes
        UNION ALL
        SELECT b.lane, b.call_id, b.name, hash(f.path_id, b.name), f.path_id
        FROM forward_calls AS f
        JOIN begun AS b ON b.parent_id = f.call_id
        WHERE NOT b.recomputes
    ),
    -- A module's position in the tree is that of its first call.
    homes AS MATERIALIZED (
        SELECT f.lane, f.name, arg_min({'id': f.parent_path_id}, f.call_id).id AS parent_path_id
        FROM forward_calls AS f
        GROUP BY f.lane, f.name
    ),
    recomputed_calls(lane, call_id, name, path_id, parent_path_id) AS (
        SELECT b.lane, b.call_id, b.name, hash(h.parent_path_id, b.name), h.parent_path_id
        FROM begun AS b
        LEFT JOIN homes AS h ON h.lane = b.lane AND h.name = b.name
        WHERE b.recomputes
        UNION ALL
        SELECT b.lane, b.call_id, b.name, hash(r.path_id, b.name), r.path_id
        FROM recomputed_calls AS r
        JOIN begun AS b ON b.parent_id = r.call_id
        WHERE NOT b.recomputes
    ),
    placed AS MATERIALIZED (
        SELECT f.*, false AS is_recomputed FROM forward_calls AS f
        UNION ALL
        SELECT r.*, true FROM recomputed_calls AS r
    ),
    spots AS MATERIALIZED (
        SELECT p.lane, p.path_id, any_value(p.parent_path_id) AS parent_path_id, any_value(p.name) AS name, min(c.ts) AS first_ts
        FROM placed AS p
        JOIN calls AS c ON c.call_id = p.call_id
        GROUP BY p.lane, p.path_id
    ),
    paths(lane, path_id, name, first_ts, path) AS (
        SELECT s.lane, s.path_id, s.name, s.first_ts, [CASE WHEN expand THEN s.name ELSE regexp_replace(s.name, '_\d+$', '') END]
        FROM spots AS s
        WHERE s.parent_path_id IS NULL
        UNION ALL
        SELECT
            s.lane, s.path_id, s.name, s.first_ts,
            list_append(p.path, CASE WHEN expand THEN s.name ELSE regexp_replace(s.name, '_\d+$', '') END)
        FROM paths AS p
        JOIN spots AS s ON s.lane = p.lane AND s.parent_path_id = p.path_id
    ),
    on_host AS (
        SELECT h.lane, h.module_id, coalesce(h.bwd_op_id, b.bwd_op_id) AS bwd_op_id, sum(h.host_ns)::BIGINT AS host_ns
        FROM lib.host_self_times('lanes') AS h
        LEFT JOIN backward AS b ON b.op_id = h.op_id
        WHERE lib.is_requested(steps, h.step) AND (include_last_profiler_step OR NOT h.in_last_step)
        GROUP BY ALL
    ),
    -- Graph replay kernels whose modules are known from a capture.
    replayed AS MATERIALIZED (
        SELECT m.run, m.rank, m.event_id, string_split(m.module_path, '/') AS path
        FROM graph_matches AS m
        WHERE m.module_path IS NOT NULL AND lib.is_requested(runs, m.run) AND lib.is_requested(ranks, m.rank)
    ),
    replayed_parts AS (
        SELECT
            l.lane, r.path[-1] AS name, g.ts AS first_ts, g.dur AS device_ns,
            CASE WHEN expand THEN r.path ELSE list_transform(r.path, lambda p: regexp_replace(p, '_\d+$', '')) END AS path
        FROM lib.scoped_gpu_ops(runs, ranks, steps, include_last_profiler_step) AS g
        JOIN replayed AS r ON r.run = g.run AND r.rank = g.rank AND r.event_id = g.event_id
        JOIN lanes AS l ON l.run = g.run AND l.rank = g.rank
    ),
    -- Join the operator only for device operations without a launch in the trace.
    on_device AS (
        SELECT
            l.lane, l.lane + coalesce(g.module_id, o.module_id) AS module_id, l.lane + coalesce(g.bwd_op_id, o.bwd_op_id) AS bwd_op_id,
            sum(g.dur)::BIGINT AS device_ns
        FROM lib.scoped_gpu_ops(runs, ranks, steps, include_last_profiler_step) AS g
        JOIN lanes AS l ON l.run = g.run AND l.rank = g.rank
        LEFT JOIN cpu_ops AS o
            ON o.run = g.run AND o.rank = g.rank AND o.event_id = CASE WHEN g.launch_id IS NULL THEN g.op_id END
        ANTI JOIN replayed AS r ON r.run = g.run AND r.rank = g.rank AND r.event_id = g.event_id
        GROUP BY ALL
    ),
    in_memory AS (
        SELECT
            l.lane, l.lane + m.module_id AS module_id, b.bwd_op_id,
            coalesce(sum(m.bytes) FILTER (m.device_type = 0), 0)::BIGINT AS host_bytes,
            coalesce(sum(m.bytes) FILTER (m.device_type <> 0), 0)::BIGINT AS device_bytes
        FROM memory_events AS m
        JOIN lanes AS l ON l.run = m.run AND l.rank = m.rank
        LEFT JOIN backward AS b ON b.op_id = l.lane + m.op_id
        WHERE m.bytes > 0 AND lib.is_requested(steps, m.step) AND (include_last_profiler_step OR NOT m.in_last_step)
        GROUP BY ALL
    ),
    costs AS (
        SELECT h.lane, h.module_id, h.bwd_op_id, h.host_ns, 0::BIGINT AS device_ns, 0::BIGINT AS host_bytes, 0::BIGINT AS device_bytes
        FROM on_host AS h
        UNION ALL
        SELECT d.lane, d.module_id, d.bwd_op_id, 0, d.device_ns, 0, 0 FROM on_device AS d
        UNION ALL
        SELECT m.lane, m.module_id, m.bwd_op_id, 0, 0, m.host_bytes, m.device_bytes FROM in_memory AS m
    ),
    -- Work is part of the backward pass if the autograd operator is inside the module call, or if there is no module
    -- call.
    decided AS (
        SELECT
            c.* EXCLUDE (module_id, bwd_op_id), coalesce(g.depth > coalesce(m.depth, -1), false) AS is_backward,
            CASE WHEN g.depth > coalesce(m.depth, -1) THEN coalesce(g.module_id, c.module_id) ELSE c.module_id END AS module_id
        FROM costs AS c
        LEFT JOIN calls AS m ON m.call_id = c.module_id
        LEFT JOIN gradients AS g ON g.bwd_op_id = c.bwd_op_id
    ),
    parts AS (
        SELECT
            d.lane, p.path_id, d.is_backward OR coalesce(p.is_recomputed, false) AS is_backward,
            NOT d.is_backward AND coalesce(p.is_recomputed, false) AS is_recomputed,
            0::BIGINT AS calls, d.host_ns, d.device_ns, d.host_bytes, d.device_bytes
        FROM decided AS d
        LEFT JOIN placed AS p ON p.call_id = d.module_id
        UNION ALL
        SELECT p.lane, p.path_id, p.is_recomputed, p.is_recomputed, 1, 0, 0, 0, 0
        FROM placed AS p
        JOIN calls AS c ON c.call_id = p.call_id
        WHERE c.is_wanted
    ),
    located AS (
        SELECT a.* EXCLUDE (path_id), p.path, p.name, p.first_ts, 0::BIGINT AS replayed_ns
        FROM parts AS a
        LEFT JOIN paths AS p ON p.lane = a.lane AND p.path_id = a.path_id
        UNION ALL BY NAME
        SELECT
            r.lane, false AS is_backward, false AS is_recomputed, 0::BIGINT AS calls, 0::BIGINT AS host_ns, r.device_ns,
            0::BIGINT AS host_bytes, 0::BIGINT AS device_bytes, r.path, r.name, r.first_ts, r.device_ns AS replayed_ns
        FROM replayed_parts AS r
    ),
    own AS MATERIALIZED (
        SELECT
            a.lane, a.path, any_value(a.name) AS name, count(DISTINCT a.name)::BIGINT AS instances, min(a.first_ts) AS first_ts,
            sum(a.replayed_ns)::BIGINT AS replayed_ns,
            coalesce(sum(a.calls) FILTER (NOT a.is_recomputed), 0)::BIGINT AS calls,
            coalesce(sum(a.calls) FILTER (a.is_recomputed), 0)::BIGINT AS recomputed_calls,
            coalesce(sum(a.host_ns) FILTER (NOT a.is_backward), 0)::BIGINT AS host_ns,
            coalesce(sum(a.host_ns) FILTER (a.is_backward), 0)::BIGINT AS backward_host_ns,
            coalesce(sum(a.host_ns) FILTER (a.is_recomputed), 0)::BIGINT AS recompute_host_ns,
            coalesce(sum(a.device_ns) FILTER (NOT a.is_backward), 0)::BIGINT AS device_ns,
            coalesce(sum(a.device_ns) FILTER (a.is_backward), 0)::BIGINT AS backward_device_ns,
            coalesce(sum(a.device_ns) FILTER (a.is_recomputed), 0)::BIGINT AS recompute_device_ns,
            coalesce(sum(a.host_bytes) FILTER (NOT a.is_backward), 0)::BIGINT AS host_bytes,
            coalesce(sum(a.device_bytes) FILTER (NOT a.is_backward), 0)::BIGINT AS device_bytes,
            coalesce(sum(a.host_bytes) FILTER (a.is_backward), 0)::BIGINT AS backward_host_bytes,
            coalesce(sum(a.device_bytes) FILTER (a.is_backward), 0)::BIGINT AS backward_device_bytes
        FROM located AS a
        GROUP BY a.lane, a.path
    ),
    -- The costs of a path count toward each of its prefixes; work outside modules belongs to no path.
    beginnings AS (
        SELECT o.lane, o.path AS whole, CASE WHEN o.path IS NOT NULL THEN o.path[:n.n] END AS path
        FROM own AS o
        CROSS JOIN LATERAL (SELECT unnest(range(1, greatest(len(coalesce(o.path, [])), 1) + 1)) AS n) AS n
    ),
    totals AS (
        SELECT
            b.lane, b.path, min(o.first_ts) AS first_ts,
            sum(o.host_ns)::BIGINT AS host_ns, sum(o.backward_host_ns)::BIGINT AS backward_host_ns,
            sum(o.recompute_host_ns)::BIGINT AS recompute_host_ns, sum(o.replayed_ns)::BIGINT AS replayed_ns, sum(o.device_ns)::BIGINT AS device_ns,
            sum(o.backward_device_ns)::BIGINT AS backward_device_ns, sum(o.recompute_device_ns)::BIGINT AS recompute_device_ns,
            sum(o.host_bytes)::BIGINT AS host_bytes, sum(o.device_bytes)::BIGINT AS device_bytes,
            sum(o.backward_host_bytes)::BIGINT AS backward_host_bytes, sum(o.backward_device_bytes)::BIGINT AS backward_device_bytes
        FROM beginnings AS b
        JOIN own AS o ON o.lane = b.lane AND o.path IS NOT DISTINCT FROM b.whole
        GROUP BY b.lane, b.path
    ),
    -- Row order: a module follows its enclosing modules and precedes modules called later.
    positions AS (
        SELECT b.lane, b.path, list(t.first_ts ORDER BY b.n) AS position
        FROM (SELECT t.lane, t.path, unnest(range(1, len(t.path) + 1)) AS n FROM totals AS t) AS b
        JOIN totals AS t ON t.lane = b.lane AND t.path = b.path[:b.n]
        GROUP BY b.lane, b.path
    ),
    whole AS (
        SELECT o.lane, sum(o.device_ns + o.backward_device_ns) AS device_ns FROM own AS o GROUP BY o.lane
    )
SELECT
    l.run,
    l.rank,
    array_to_string(t.path, '/') AS path,
    regexp_replace(t.path[-1], '_\d+$', '') AS class,
    len(t.path) - 1 AS depth,
    CASE WHEN t.path IS NOT NULL THEN coalesce(o.instances, 0) END AS instance_count,
    CASE WHEN t.path IS NOT NULL THEN coalesce(o.calls, 0) END AS call_count,
    CASE WHEN t.path IS NOT NULL THEN coalesce(o.recomputed_calls, 0) END AS recompute_count,
    coalesce(o.host_ns, 0) AS host_self_ns,
    t.host_ns AS host_total_ns,
    coalesce(o.backward_host_ns, 0) AS backward_host_self_ns,
    t.backward_host_ns AS backward_host_total_ns,
    t.recompute_host_ns,
    CASE WHEN l.has_device THEN coalesce(o.device_ns, 0) END AS device_self_ns,
    CASE WHEN l.has_device THEN t.device_ns END AS device_total_ns,
    CASE WHEN l.has_device THEN t.replayed_ns END AS replayed_device_ns,
    CASE WHEN l.has_device THEN coalesce(o.backward_device_ns, 0) END AS backward_device_self_ns,
    CASE WHEN l.has_device THEN t.backward_device_ns END AS backward_device_total_ns,
    CASE WHEN l.has_device THEN t.recompute_device_ns END AS recompute_device_ns,
    100 * ((t.device_ns + t.backward_device_ns) / nullif(w.device_ns, 0)) AS device_pct,
    CASE WHEN l.remembers THEN t.host_bytes END AS host_allocated_bytes,
    CASE WHEN l.remembers THEN t.device_bytes END AS device_allocated_bytes,
    CASE WHEN l.remembers THEN t.backward_host_bytes END AS backward_host_allocated_bytes,
    CASE WHEN l.remembers THEN t.backward_device_bytes END AS backward_device_allocated_bytes
FROM totals AS t
JOIN lanes AS l ON l.lane = t.lane
JOIN whole AS w ON w.lane = t.lane
LEFT JOIN own AS o ON o.lane = t.lane AND o.path IS NOT DISTINCT FROM t.path
LEFT JOIN positions AS e ON e.lane = t.lane AND e.path = t.path
ORDER BY l.run, l.rank, e.position NULLS LAST, t.path
