-- Each event on the host with the time that is its own: its duration without that of what it called.
--
-- What ends on another thread than it began is time of no thread.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib.host_self_times(
    -- Name of a relation with run, rank, lane: lane is what is added to an event_id to make one number of any run and rank.
    lane_spans
) AS TABLE
-- Columns:
--   lane          BIGINT [1]   Lane of the run and rank.
--   call_id       BIGINT       The event, with its lane.
--   op_id         BIGINT       The nearest operator around it, with its lane.
--   module_id     BIGINT       The nearest nn.Module call around it, or itself, with its lane.
--   fwd_op_id     BIGINT       Of backward operators the forward one, with its lane.
--   bwd_op_id     BIGINT       Of operators the operator of autograd's backward pass that it is or runs in, with its lane.
--   stack_id      BIGINT       Row of stacks.
--   call_stack    VARCHAR      Frames as recorded on it, the innermost first; NULL where it says none.
--   host_ns       BIGINT [ns]  Time of itself.
--   step          BIGINT       Profiler step in which the event started; NULL outside steps.
--   in_last_step  BOOLEAN      Whether it is left out by default.
WITH
    _events AS (
        SELECT
            c.run, c.rank, c.event_id, c.parent_id, c.stack_id, c.dur, c.step, c.in_last_step, c.parent_op_id AS op_id, c.module_id,
            c.fwd_op_id, c.bwd_op_id, nullif(c.call_stack, '') AS call_stack
        FROM cpu_ops AS c
        UNION ALL BY NAME
        SELECT r.run, r.rank, r.event_id, r.parent_id, r.stack_id, r.dur, r.step, r.in_last_step, r.op_id, r.module_id FROM runtime_calls AS r
        UNION ALL BY NAME
        SELECT
            a.run, a.rank, a.event_id, a.parent_id, a.stack_id, CASE WHEN a.is_async THEN 0 ELSE a.dur END AS dur,
            a.step, a.in_last_step, a.op_id, a.module_id, nullif(a.call_stack, '') AS call_stack
        FROM annotations AS a
        WHERE NOT a.on_gpu
        UNION ALL BY NAME
        SELECT
            p.run, p.rank, p.event_id, p.parent_id, p.stack_id, p.dur, p.step, p.in_last_step, p.op_id,
            CASE WHEN starts_with(p.name, 'nn.Module: ') THEN p.event_id ELSE p.parent_module_id END AS module_id
        FROM python_calls AS p
    ),
    -- One number for an event of any run and rank.
    _calls AS MATERIALIZED (
        SELECT
            l.lane::BIGINT AS lane, l.lane + e.event_id AS call_id, l.lane + e.parent_id AS parent_id, l.lane + e.op_id AS op_id,
            l.lane + e.module_id AS module_id, l.lane + e.fwd_op_id AS fwd_op_id, l.lane + e.bwd_op_id AS bwd_op_id,
            e.stack_id, e.call_stack, e.dur, e.step, e.in_last_step
        FROM _events AS e
        JOIN query_table(lane_spans) AS l ON l.run = e.run AND l.rank = e.rank
    ),
    _children AS (
        SELECT c.parent_id AS call_id, sum(c.dur)::BIGINT AS dur
        FROM _calls AS c
        WHERE c.parent_id IS NOT NULL
        GROUP BY c.parent_id
    )
SELECT
    c.lane, c.call_id, c.op_id, c.module_id, c.fwd_op_id, c.bwd_op_id, c.stack_id, c.call_stack,
    c.dur - coalesce(h.dur, 0) AS host_ns, c.step, c.in_last_step
FROM _calls AS c
LEFT JOIN _children AS h ON h.call_id = c.call_id
