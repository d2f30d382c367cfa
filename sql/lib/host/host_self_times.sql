-- Host events with their self time: their duration minus the duration of nested events.
--
-- An annotation that ends on a different thread than it began on counts toward neither thread.
CREATE OR REPLACE MACRO lib.host_self_times(
    -- Name of a relation with run, rank, lane; lane plus an event_id is unique across runs and ranks.
    lane_spans
) AS TABLE
-- Columns:
--   lane          BIGINT [1]   Lane of the run and rank.
--   call_id       BIGINT       lane + event_id of the event.
--   op_id         BIGINT       lane + event_id of the innermost enclosing operator.
--   module_id     BIGINT       lane + event_id of the innermost enclosing nn.Module call, or of the event itself.
--   fwd_op_id     BIGINT       lane + event_id of the forward operator; for backward operators only.
--   bwd_op_id     BIGINT       lane + event_id of the operator of autograd's backward pass that encloses this operator, or of this operator itself.
--   stack_id      BIGINT       Row of stacks that names the event and its enclosing events.
--   call_stack    VARCHAR      Recorded frames of the event, innermost first; NULL if there are none.
--   host_ns       BIGINT [ns]  Self time.
--   step          BIGINT       Profiler step in which the event started; NULL outside steps.
--   in_last_step  BOOLEAN      Whether it starts in or after the rank's last step; excluded by default.
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
    -- One number identifies an event across runs and ranks.
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
