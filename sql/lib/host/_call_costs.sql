-- Host and device self time by call stack.
--
-- Host time is taken from lib.host_self_times. Device time belongs to the stack of the launch; if the launch is
-- unknown, it belongs to the stack of the operator that the trace names. The row without a stack contains device time
-- whose launch and operator are unknown.
CREATE OR REPLACE MACRO lib._call_costs(
    runs,
    ranks,
    steps,
    include_last_profiler_step
) AS TABLE
-- Columns:
--   run           VARCHAR         Run name.
--   rank          INTEGER         Rank of the process.
--   stack_id      BIGINT          Row of stacks that names the event and its enclosing events.
--   recorded      VARCHAR         Recorded Python frames, innermost first, if the trace has no Python calls.
--   call_count    BIGINT [count]  Number of host events.
--   host_ns       BIGINT [ns]     Host self time.
--   device_count  BIGINT [count]  Number of device operations launched by these events.
--   device_ns     BIGINT [ns]     Total duration of these device operations.
--   backward_ns   BIGINT [ns]     Device time launched by the backward pass of these operators; it is also included in device_ns of other rows.
WITH RECURSIVE
    _lanes AS MATERIALIZED (
        SELECT
            k.run, k.rank, row_number() OVER (ORDER BY k.run, k.rank) << 40 AS lane,
            NOT EXISTS (FROM python_calls AS p WHERE p.run = k.run AND p.rank = k.rank) AS needs_recorded
        FROM ranks AS k
        WHERE lib.is_requested(runs, k.run) AND lib.is_requested(ranks, k.rank)
    ),
    _calls AS MATERIALIZED (
        SELECT
            h.lane, h.call_id, h.stack_id, h.host_ns,
            lib.is_requested(steps, h.step) AND (include_last_profiler_step OR NOT h.in_last_step) AS is_wanted,
            h.fwd_op_id,
            CASE WHEN l.needs_recorded THEN h.op_id END AS op_id,
            CASE WHEN l.needs_recorded THEN h.call_stack END AS recorded
        FROM lib.host_self_times('_lanes') AS h
        JOIN _lanes AS l ON l.lane = h.lane
    ),
    -- Events without recorded frames get the frames of the enclosing operator. There are no rows if the trace records
    -- frames as events.
    _said AS (
        SELECT c.call_id, c.recorded FROM _calls AS c WHERE c.recorded IS NOT NULL
        UNION ALL
        SELECT c.call_id, s.recorded
        FROM _said AS s
        JOIN (SELECT c.call_id, c.op_id FROM _calls AS c WHERE c.recorded IS NULL AND c.op_id IS NOT NULL) AS c ON c.op_id = s.call_id
    ),
    _launched AS (
        SELECT
            l.lane, g.stack_id, l.lane + coalesce(g.launch_id, g.op_id) AS call_id, l.lane + g.op_id AS op_id,
            l.lane + g.bwd_op_id AS bwd_op_id, g.dur
        FROM lib.scoped_gpu_ops(runs, ranks, steps, include_last_profiler_step) AS g
        JOIN _lanes AS l ON l.run = g.run AND l.rank = g.rank
    ),
    -- Only operations without a launch in the trace need their operator.
    _placed AS (
        SELECT d.lane, d.stack_id, d.call_id, d.dur FROM _launched AS d WHERE d.stack_id IS NOT NULL
        UNION ALL
        SELECT d.lane, o.stack_id, d.call_id, d.dur
        FROM _launched AS d
        LEFT JOIN _calls AS o ON o.call_id = d.op_id
        WHERE d.stack_id IS NULL
    ),
    _costs AS (
        SELECT
            -- A union next to a recursion takes the types of its first branch.
            c.lane, c.stack_id, c.call_id, 1::BIGINT AS call_count, c.host_ns,
            0::BIGINT AS device_count, 0::BIGINT AS device_ns, 0::BIGINT AS backward_ns
        FROM _calls AS c
        WHERE c.is_wanted
        UNION ALL
        SELECT p.lane, p.stack_id, p.call_id, 0, 0, 1, p.dur, 0 FROM _placed AS p
        UNION ALL
        SELECT d.lane, f.stack_id, f.call_id, 0, 0, 0, 0, d.dur
        FROM _launched AS d
        JOIN _calls AS b ON b.call_id = d.bwd_op_id
        JOIN _calls AS f ON f.call_id = b.fwd_op_id
    )
SELECT
    l.run, l.rank, c.stack_id, s.recorded, sum(c.call_count)::BIGINT AS call_count, sum(c.host_ns)::BIGINT AS host_ns,
    sum(c.device_count)::BIGINT AS device_count, sum(c.device_ns)::BIGINT AS device_ns, sum(c.backward_ns)::BIGINT AS backward_ns
FROM _costs AS c
JOIN _lanes AS l ON l.lane = c.lane
LEFT JOIN _said AS s ON s.call_id = c.call_id
GROUP BY ALL
