-- Training phase of each launch: forward pass, backward pass or optimizer.
--
-- A launch is in the backward pass if it runs inside a backward operator on the same thread. Such an operator is run
-- by autograd for a forward operator, or has a backward name (AddmmBackward0). This includes recomputation, as with
-- checkpointing. Launches inside Optimizer.step and zero_grad belong to the optimizer, which takes precedence. All
-- other launches belong to the forward pass.
CREATE OR REPLACE MACRO lib.launch_phases(
    runs,
    ranks
) AS TABLE
-- Columns:
--   run        VARCHAR  Run name.
--   rank       INTEGER  Rank of the process.
--   launch_id  BIGINT   event_id of the launch call.
--   phase      VARCHAR  Training phase: forward, backward or optimizer.
WITH
    _points AS (
        SELECT
            c.run, c.rank, c.pid, c.tid, c.ts, NULL::BIGINT AS launch_id, c.ts + c.dur AS backward_until,
            NULL::BIGINT AS optimizer_until
        FROM cpu_ops AS c
        WHERE
            lib.is_backward_op(c.name, c.fwd_op_id)
            AND lib.is_requested(runs, c.run) AND lib.is_requested(ranks, c.rank)
        UNION ALL
        SELECT a.run, a.rank, a.pid, a.tid, a.ts, NULL, NULL, a.ts + a.dur
        FROM annotations AS a
        WHERE
            NOT a.on_gpu AND (starts_with(a.name, 'Optimizer.step#') OR starts_with(a.name, 'Optimizer.zero_grad#'))
            AND lib.is_requested(runs, a.run) AND lib.is_requested(ranks, a.rank)
        UNION ALL
        SELECT r.run, r.rank, r.pid, r.tid, r.ts, r.event_id, NULL, NULL
        FROM runtime_calls AS r
        SEMI JOIN gpu_ops AS g ON g.run = r.run AND g.rank = r.rank AND g.launch_id = r.event_id
        WHERE lib.is_requested(runs, r.run) AND lib.is_requested(ranks, r.rank)
    ),
    -- Latest end of all spans that have started so far: a launch before that end is inside one of the spans.
    _covered AS (
        SELECT
            p.run, p.rank, p.launch_id, p.ts,
            max(p.backward_until) OVER so_far AS backward_until,
            max(p.optimizer_until) OVER so_far AS optimizer_until
        FROM _points AS p
        WINDOW so_far AS (PARTITION BY p.run, p.rank, p.pid, p.tid ORDER BY p.ts, p.launch_id NULLS FIRST ROWS UNBOUNDED PRECEDING)
    )
SELECT
    c.run AS run, c.rank AS rank, c.launch_id AS launch_id,
    CASE
        WHEN c.optimizer_until >= c.ts THEN 'optimizer'
        WHEN c.backward_until >= c.ts THEN 'backward'
        ELSE 'forward'
    END AS phase
FROM _covered AS c
WHERE c.launch_id IS NOT NULL
