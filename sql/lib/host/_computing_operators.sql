-- Operators that compute on the host: outermost operators on the thread that runs the steps, and those of autograd's
-- backward pass on any thread.
--
-- An operator that communicates, or calls an operator that waits for communication, is excluded.
CREATE OR REPLACE MACRO lib._computing_operators(
    runs,
    -- Name of a relation with the columns of lib.device_ranks: the ranks to include.
    some_ranks
) AS TABLE
-- Columns:
--   run   VARCHAR      Run name.
--   rank  INTEGER      Rank of the process.
--   span  INTEGER      Recording of the rank.
--   ts    BIGINT [ns]  Start.
--   dur   BIGINT [ns]  Duration, above 0.
WITH
    _threads AS MATERIALIZED (
        SELECT t.*
        FROM lib.step_threads(runs, NULL) AS t
        SEMI JOIN query_table(some_ranks) AS r ON r.run = t.run AND r.rank = t.rank
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
    AND NOT lib.communicates(c.name)
    AND NOT EXISTS (
        FROM _waiting AS w
        WHERE w.run = c.run AND w.rank = c.rank AND w.pid = c.pid AND w.tid = c.tid AND w.ts >= c.ts AND w.ts < c.ts + c.dur
    )
