-- Device time launched during each call, by the call itself and by its callees.
--
-- A kernel belongs to the innermost operator that encloses its launch, as in torch; kernels launched outside
-- operators belong to no operator. Durations are summed even if kernels ran concurrently.
CREATE OR REPLACE MACRO lib._device_time_inside(
    -- Name of a relation of calls with call_id, parent_id and is_owner (whether the call is an operator).
    called_spans,
    -- Name of a relation with run, rank, lane; lane plus an event_id is a call_id.
    lane_spans,
    -- Name of a relation with the columns of lib.tensor_core_names.
    named_kernels
) AS TABLE
-- Columns:
--   call_id     BIGINT       Id of the call; calls without launches have no row.
--   self_ns     BIGINT [ns]  Device time launched by the call itself.
--   total_ns    BIGINT [ns]  Device time launched by the call and its callees.
--   tensor_ns   BIGINT [ns]  Part of self_ns in kernels on tensor cores.
--   unknown_ns  BIGINT [ns]  Part of self_ns in kernels whose names do not show tensor core use.
WITH RECURSIVE
    _calls AS MATERIALIZED (
        SELECT c.call_id, c.parent_id, c.is_owner FROM query_table(called_spans) AS c
    ),
    _launched AS (
        SELECT
            l.lane + g.launch_id AS call_id, sum(g.dur)::BIGINT AS device_ns,
            coalesce(sum(g.dur) FILTER (t.uses_tensor_cores), 0)::BIGINT AS tensor_ns,
            coalesce(sum(g.dur) FILTER (g.kind = 'kernel' AND t.uses_tensor_cores IS NULL), 0)::BIGINT AS unknown_ns
        FROM gpu_ops AS g
        JOIN query_table(lane_spans) AS l ON l.run = g.run AND l.rank = g.rank
        LEFT JOIN query_table(named_kernels) AS t ON t.name = g.name AND g.kind = 'kernel'
        WHERE g.launch_id IS NOT NULL AND g.class <> 'sync' AND NOT g.is_suspect
        GROUP BY ALL
    ),
    -- One row per call and ancestor level; sums are accumulated on the way up.
    _climbing(call_id, owned_ns, free_ns, tensor_ns, unknown_ns) AS (
        SELECT c.parent_id, 0::BIGINT, sum(n.device_ns)::BIGINT, sum(n.tensor_ns)::BIGINT, sum(n.unknown_ns)::BIGINT
        FROM _launched AS n
        JOIN _calls AS c ON c.call_id = n.call_id
        WHERE c.parent_id IS NOT NULL
        GROUP BY c.parent_id
        UNION ALL
        SELECT
            c.parent_id,
            sum(n.owned_ns + CASE WHEN c.is_owner THEN n.free_ns ELSE 0 END)::BIGINT,
            sum(CASE WHEN c.is_owner THEN 0 ELSE n.free_ns END)::BIGINT,
            sum(CASE WHEN c.is_owner THEN 0 ELSE n.tensor_ns END)::BIGINT,
            sum(CASE WHEN c.is_owner THEN 0 ELSE n.unknown_ns END)::BIGINT
        FROM _climbing AS n
        JOIN _calls AS c ON c.call_id = n.call_id
        WHERE c.parent_id IS NOT NULL
        GROUP BY c.parent_id
    )
SELECT
    n.call_id AS call_id,
    sum(CASE WHEN c.is_owner THEN n.free_ns ELSE 0 END)::BIGINT AS self_ns,
    sum(n.owned_ns + CASE WHEN c.is_owner THEN n.free_ns ELSE 0 END)::BIGINT AS total_ns,
    sum(CASE WHEN c.is_owner THEN n.tensor_ns ELSE 0 END)::BIGINT AS tensor_ns,
    sum(CASE WHEN c.is_owner THEN n.unknown_ns ELSE 0 END)::BIGINT AS unknown_ns
FROM _climbing AS n
JOIN _calls AS c ON c.call_id = n.call_id
GROUP BY n.call_id
