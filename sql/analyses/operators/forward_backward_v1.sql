-- Each forward operator with the backward operators that autograd ran for it: host time and kernel time of both.
--
-- Operators are paired by the flow arrows of the trace or, without flow arrows, by autograd sequence numbers
-- (cpu_ops.fwd_op_id). If nested backward operators have the same forward operator, only the outermost one counts.
-- Kernel time covers everything below an operator on all streams, including concurrent kernels; kernels of the
-- backward pass may run in a later step. Forward operators without a backward operator have no row. If times are whole
-- microseconds, flow arrows cannot distinguish operators that start in the same microsecond.
--
-- Title: Forward operators with their backward pass
-- Shown: rank, step, forward_kernel_ns, backward_kernel_ns, forward_name, backward_name, forward_ns, backward_ns
-- Status: experimental
-- Since: 0.1
-- Reference: none; HTA never fills its fwdbwd columns
-- Needs: host operators with fwdbwd arrows or sequence numbers (record with a backward pass)
CREATE OR REPLACE MACRO forward_backward_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    -- Profiler steps of the forward operators to include; NULL means every step and all activity outside steps.
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false
) AS TABLE
-- Columns:
--   run                    VARCHAR         Run name.
--   rank                   INTEGER         Rank of the process.
--   step                   BIGINT          Profiler step of the forward operator; NULL outside steps.
--   forward_id             BIGINT          event_id of the forward operator.
--   forward_name           VARCHAR         Name of the forward operator.
--   forward_ns             BIGINT [ns]     Duration of the forward operator.
--   forward_kernel_count   BIGINT [count]  Number of device operations below the forward operator.
--   forward_kernel_ns      BIGINT [ns]     Total duration of these device operations.
--   backward_count         BIGINT [count]  Number of backward operators.
--   backward_id            BIGINT          event_id of the first backward operator.
--   backward_name          VARCHAR         Name of the first backward operator.
--   backward_ns            BIGINT [ns]     Total duration of all backward operators.
--   backward_kernel_count  BIGINT [count]  Number of device operations below the backward operators.
--   backward_kernel_ns     BIGINT [ns]     Total duration of these device operations.
WITH
    tree AS (
        SELECT t.run, t.rank, t.tree_id, t.position, t.next_position - t.position - 1 AS descendants, t.event_id, t.table_name, t.dur
        FROM lib.call_tree(runs, ranks, include_last_profiler_step, false) AS t
    ),
    below AS (
        SELECT
            t.run,
            t.rank,
            t.event_id,
            t.tree_id,
            t.position,
            t.position + t.descendants AS last_position,
            coalesce(sum(CASE WHEN t.table_name = 'gpu_ops' THEN 1 END) OVER subtree, 0) AS kernel_count,
            coalesce(sum(CASE WHEN t.table_name = 'gpu_ops' THEN t.dur END) OVER subtree, 0) AS kernel_ns
        FROM tree AS t
        WINDOW subtree AS (PARTITION BY t.tree_id ORDER BY t.position ROWS BETWEEN CURRENT ROW AND t.descendants FOLLOWING)
    ),
    ops AS (
        SELECT c.run, c.rank, c.event_id, c.name, c.ts, c.dur, c.step, c.fwd_op_id, b.kernel_count, b.kernel_ns,
            b.tree_id, b.position, b.last_position
        FROM cpu_ops AS c
        JOIN below AS b ON b.run = c.run AND b.rank = c.rank AND b.event_id = c.event_id
    ),
    outermost AS (
        SELECT o.*
        FROM ops AS o
        WHERE o.fwd_op_id IS NOT NULL
        QUALIFY coalesce(
            o.position > max(o.last_position) OVER (
                PARTITION BY o.tree_id, o.fwd_op_id
                ORDER BY o.position
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ),
            true
        )
    ),
    backward AS (
        SELECT
            o.run,
            o.rank,
            o.fwd_op_id,
            count(*) AS backward_count,
            arg_min({'id': o.event_id, 'name': o.name}, {'ts': o.ts, 'id': o.event_id}) AS first_op,
            sum(o.dur)::BIGINT AS backward_ns,
            sum(o.kernel_count)::BIGINT AS backward_kernel_count,
            sum(o.kernel_ns)::BIGINT AS backward_kernel_ns
        FROM outermost AS o
        GROUP BY o.run, o.rank, o.fwd_op_id
    )
SELECT
    f.run,
    f.rank,
    f.step,
    f.event_id AS forward_id,
    f.name AS forward_name,
    f.dur AS forward_ns,
    f.kernel_count::BIGINT AS forward_kernel_count,
    f.kernel_ns::BIGINT AS forward_kernel_ns,
    b.backward_count,
    b.first_op.id AS backward_id,
    b.first_op.name AS backward_name,
    b.backward_ns,
    b.backward_kernel_count,
    b.backward_kernel_ns
FROM backward AS b
JOIN ops AS f ON f.run = b.run AND f.rank = b.rank AND f.event_id = b.fwd_op_id
WHERE lib.is_requested(steps, f.step)
ORDER BY f.run, f.rank, f.ts, f.event_id
