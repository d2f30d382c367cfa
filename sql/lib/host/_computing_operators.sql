-- Operators that compute on the host of ranks without a device: outermost operators of the thread that runs the steps
-- and of autograd's backward pass, which may have a thread of its own.
--
-- Operators that communicate are not included, nor are those that wait for communication in one of their operators.
CREATE OR REPLACE MACRO lib._computing_operators(
    runs
) AS TABLE
-- Columns:
--   run   VARCHAR      Run name.
--   rank  INTEGER      Rank of the process.
--   span  INTEGER      Recording of the rank.
--   ts    BIGINT [ns]  Start.
--   dur   BIGINT [ns]  Duration, above 0.
WITH
    -- Without collectives on the host there is nothing that a computation could overlap.
    _communicating AS (
        SELECT DISTINCT m.run, m.rank FROM lib.swept_collectives(runs, NULL) AS m WHERE m.on_host
    ),
    _threads AS MATERIALIZED (
        SELECT t.*
        FROM lib.step_threads(runs, NULL) AS t
        WHERE (t.run, t.rank) IN (SELECT (c.run, c.rank) FROM _communicating AS c)
    ),
    _waiting AS MATERIALIZED (
        SELECT c.run, c.rank, c.pid, c.tid, c.ts
        FROM cpu_ops AS c
        JOIN _threads AS t ON t.run = c.run AND t.rank = c.rank
        WHERE c.name IN ('_c10d_functional::wait_tensor', 'c10d::barrier', 'c10d::monitored_barrier_')
    )
SELECT c.run, c.rank, c.span, c.ts, c.dur
FROM cpu_ops AS c
JOIN _threads AS t ON t.run = c.run AND t.rank = c.rank
WHERE
    c.parent_op_id IS NULL AND c.dur > 0
    AND ((c.pid = t.pid AND c.tid = t.tid) OR starts_with(c.name, 'autograd::engine::evaluate_function: '))
    AND NOT regexp_matches(c.name, '^(c10d|nccl|gloo|_c10d_functional|record_param_comms)')
    AND NOT EXISTS (
        FROM _waiting AS w
        WHERE w.run = c.run AND w.rank = c.rank AND w.pid = c.pid AND w.tid = c.tid AND w.ts >= c.ts AND w.ts < c.ts + c.dur
    )
