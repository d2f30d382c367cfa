-- Memory allocated by operators on each device: number of allocations, bytes, and net increase.
--
-- Self columns cover memory activity of the operator itself on its thread, outside the operators that it called; the
-- other columns include called operators. If an operator calls an operator of the same name, the row includes both
-- totals. Activity outside operators, such as Python releasing a tensor, is in a row without a name. Over all steps
-- and all rows of a device, including the row without a name, self_increase_bytes sums to end_bytes - before_bytes in
-- memory_peaks. Operators without memory activity on a device have no row for that device.
--
-- Title: Memory allocated by operators
-- Shown: rank, device_label, self_increase_bytes, self_allocated_bytes, operator_name, module, call_count, increase_bytes
-- Status: stable
-- Since: 0.1
-- Scope: runs, ranks, steps, include_last_profiler_step; calls belong to the step in which they start
-- Reference: TensorBoard profiler plugin, memory statistics
-- Needs: memory events (profile_memory=True); modules need with_stack
-- Report: at most 64 ranks; if memory_events
-- Chart:
--   mark = "bars"
--   title = "The operators that allocate the most memory"
--   notes = ["Sum over all ranks, without the operators that they call. Memory that is reused counts each time."]
--   empty = "No operator allocated anything."
--   name = "operator_name"
--   value = "self_allocated_bytes"
--   measure = "Allocated, without callees"
--   part = "device_type"
--   separate = true
--   parts.1 = ["GPU", "memory"]
--   parts.0 = ["CPU", "memory"]
--   tooltip.self_increase_bytes = "Allocated - freed"
--   tooltip.self_allocation_count = "Allocations"
--   tooltip.call_count = "Calls"
CREATE OR REPLACE MACRO memory_by_operator_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false,
    -- Whether calls in different nn.Modules have separate rows.
    by_module BOOLEAN := false
) AS TABLE
-- Columns:
--   run                    VARCHAR         Run name.
--   rank                   INTEGER         Rank of the process.
--   device_type            INTEGER         Device type as torch numbers it: 0 CPU, 1 CUDA or ROCm.
--   device                 BIGINT          Device number; -1: CPU.
--   device_label           VARCHAR         Name of the device: CPU, or GPU with its number; NULL if not recorded.
--   operator_name          VARCHAR         Recorded operator name; NULL outside operators.
--   module                 VARCHAR         nn.Module call that encloses the operator or, in the backward pass, its forward operator; NULL without by_module, or if unknown.
--   call_count             BIGINT [count]  Number of calls, including calls without memory activity; NULL outside operators.
--   self_increase_bytes    BIGINT [bytes]  Allocated minus freed bytes, excluding called operators.
--   self_allocated_bytes   BIGINT [bytes]  Allocated bytes, excluding called operators.
--   self_allocation_count  BIGINT [count]  Number of allocations, excluding called operators.
--   increase_bytes         BIGINT [bytes]  Allocated minus freed bytes, including called operators.
--   allocated_bytes        BIGINT [bytes]  Allocated bytes, including called operators.
--   allocation_count       BIGINT [count]  Number of allocations, including called operators.
WITH RECURSIVE
    -- lane + event_id identifies an operator across runs and ranks.
    lanes AS MATERIALIZED (
        SELECT d.run, d.rank, row_number() OVER (ORDER BY d.run, d.rank) << 40 AS lane
        FROM (SELECT DISTINCT m.run, m.rank FROM memory_events AS m WHERE lib.is_requested(runs, m.run) AND lib.is_requested(ranks, m.rank)) AS d
    ),
    -- Number the devices: one integer keeps the rows narrow.
    positions AS MATERIALIZED (
        SELECT d.*, row_number() OVER (ORDER BY d.run, d.rank, d.device_type, d.device)::INTEGER AS position
        FROM (SELECT DISTINCT m.run, m.rank, m.device_type, m.device FROM memory_events AS m) AS d
        JOIN lanes AS l ON l.run = d.run AND l.rank = d.rank
    ),
    own AS MATERIALIZED (
        SELECT
            p.position, l.lane + m.op_id AS id,
            CASE WHEN m.op_id IS NULL THEN m.step END AS step, m.op_id IS NULL AND m.in_last_step AS in_last_step,
            sum(m.bytes)::BIGINT AS increase,
            coalesce(sum(m.bytes) FILTER (m.bytes > 0), 0)::BIGINT AS allocated,
            count_if(m.bytes > 0)::BIGINT AS allocations
        FROM memory_events AS m
        JOIN lanes AS l ON l.run = m.run AND l.rank = m.rank
        JOIN positions AS p
            ON p.run = m.run AND p.rank = m.rank AND p.device_type IS NOT DISTINCT FROM m.device_type
            AND p.device IS NOT DISTINCT FROM m.device
        GROUP BY ALL
    ),
    parents AS MATERIALIZED (
        SELECT l.lane + c.event_id AS id, l.lane + c.parent_op_id AS parent_id
        FROM cpu_ops AS c
        JOIN lanes AS l ON l.run = c.run AND l.rank = c.rank
        WHERE c.parent_op_id IS NOT NULL
    ),
    -- Each level adds the sums of its operators to their parents.
    climbing(position, id, increase, allocated, allocations) AS (
        SELECT o.position, o.id, o.increase, o.allocated, o.allocations
        FROM own AS o
        WHERE o.id IS NOT NULL
        UNION ALL
        SELECT n.position, p.parent_id, sum(n.increase)::BIGINT, sum(n.allocated)::BIGINT, sum(n.allocations)::BIGINT
        FROM climbing AS n
        JOIN parents AS p ON p.id = n.id
        GROUP BY n.position, p.parent_id
    ),
    totals AS MATERIALIZED (
        SELECT
            n.position, n.id, sum(n.increase)::BIGINT AS increase, sum(n.allocated)::BIGINT AS allocated,
            sum(n.allocations)::BIGINT AS allocations
        FROM climbing AS n
        GROUP BY n.position, n.id
    ),
    ops AS NOT MATERIALIZED (
        SELECT l.run, l.rank, l.lane + c.event_id AS id, c.event_id AS op_id, c.name, c.module_id
        FROM cpu_ops AS c
        JOIN lanes AS l ON l.run = c.run AND l.rank = c.rank
        WHERE lib.is_requested(steps, c.step) AND (include_last_profiler_step OR NOT c.in_last_step)
    ),
    told_apart AS MATERIALIZED (
        SELECT o.run, o.rank, o.op_id, o.module_id FROM ops AS o WHERE by_module
    ),
    modules AS MATERIALIZED (
        SELECT l.lane + p.op_id AS id, lib.module_name(m.name) AS module
        FROM told_apart AS p
        JOIN lanes AS l ON l.run = p.run AND l.rank = p.rank
        JOIN lib.operators_around('told_apart') AS a ON a.run = p.run AND a.rank = p.rank AND a.op_id = p.op_id
        JOIN python_calls AS m ON m.run = p.run AND m.rank = p.rank AND m.event_id = coalesce(p.module_id, a.forward_module_id)
    ),
    calls AS (
        SELECT o.run, o.rank, o.name, m.module, count(*) AS call_count
        FROM ops AS o
        LEFT JOIN modules AS m ON m.id = o.id
        GROUP BY o.run, o.rank, o.name, m.module
    ),
    summed AS (
        SELECT
            t.position, o.run, o.rank, o.name, m.module,
            coalesce(sum(w.increase), 0)::BIGINT AS self_increase,
            coalesce(sum(w.allocated), 0)::BIGINT AS self_allocated,
            coalesce(sum(w.allocations), 0)::BIGINT AS self_allocations,
            sum(t.increase)::BIGINT AS increase, sum(t.allocated)::BIGINT AS allocated, sum(t.allocations)::BIGINT AS allocations
        FROM totals AS t
        JOIN ops AS o ON o.id = t.id
        LEFT JOIN own AS w ON w.id = t.id AND w.position = t.position
        LEFT JOIN modules AS m ON m.id = o.id
        GROUP BY ALL
    ),
    placed_rows AS (
        SELECT
            s.position, s.name, s.module, c.call_count, s.self_increase, s.self_allocated, s.self_allocations, s.increase, s.allocated,
            s.allocations
        FROM summed AS s
        JOIN calls AS c ON c.run = s.run AND c.rank = s.rank AND c.name = s.name AND c.module IS NOT DISTINCT FROM s.module
        UNION ALL BY NAME
        SELECT
            o.position, sum(o.increase)::BIGINT AS self_increase, sum(o.allocated)::BIGINT AS self_allocated,
            sum(o.allocations)::BIGINT AS self_allocations, sum(o.increase)::BIGINT AS increase, sum(o.allocated)::BIGINT AS allocated,
            sum(o.allocations)::BIGINT AS allocations
        FROM own AS o
        WHERE o.id IS NULL AND lib.is_requested(steps, o.step) AND (include_last_profiler_step OR NOT o.in_last_step)
        GROUP BY o.position
    ),
    rows AS (
        SELECT p.run, p.rank, p.device_type, p.device, d.* EXCLUDE (position)
        FROM placed_rows AS d
        JOIN positions AS p ON p.position = d.position
    )
SELECT
    r.run,
    r.rank,
    r.device_type,
    r.device,
    lib.device_label(r.device_type, r.device) AS device_label,
    r.name AS operator_name,
    r.module,
    r.call_count,
    r.self_increase AS self_increase_bytes,
    r.self_allocated AS self_allocated_bytes,
    r.self_allocations AS self_allocation_count,
    r.increase AS increase_bytes,
    r.allocated AS allocated_bytes,
    r.allocations AS allocation_count
FROM rows AS r
ORDER BY r.run, r.rank, r.device_type, r.device, r.self_allocated DESC, r.allocated DESC, r.name, r.module
