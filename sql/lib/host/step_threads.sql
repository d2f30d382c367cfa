-- Thread of each rank that runs the steps; in a trace without steps, the thread with the most time in operators.
CREATE OR REPLACE MACRO lib.step_threads(
    runs,
    ranks
) AS TABLE
-- Columns:
--   run   VARCHAR  Run name.
--   rank  INTEGER  Rank of the process.
--   pid   BIGINT   Process id; NULL if no thread runs steps or operators.
--   tid   BIGINT   Thread id.
WITH
    _stepping AS (
        SELECT s.run, s.rank, arg_min({'pid': s.pid, 'tid': s.tid}, (s.ts, s.step)) AS thread
        FROM steps AS s
        WHERE lib.is_requested(runs, s.run) AND lib.is_requested(ranks, s.rank)
        GROUP BY s.run, s.rank
    ),
    _busy AS (
        SELECT c.run, c.rank, c.pid, c.tid, sum(c.dur) AS ns
        FROM cpu_ops AS c
        WHERE c.parent_op_id IS NULL AND lib.is_requested(runs, c.run) AND lib.is_requested(ranks, c.rank)
        GROUP BY c.run, c.rank, c.pid, c.tid
    ),
    _busiest AS (
        SELECT b.run, b.rank, arg_min({'pid': b.pid, 'tid': b.tid}, (-b.ns, b.pid, b.tid)) AS thread FROM _busy AS b GROUP BY b.run, b.rank
    ),
    _threads AS (
        SELECT k.run, k.rank, coalesce(s.thread, b.thread) AS thread
        FROM ranks AS k
        LEFT JOIN _stepping AS s ON s.run = k.run AND s.rank = k.rank
        LEFT JOIN _busiest AS b ON b.run = k.run AND b.rank = k.rank
        WHERE lib.is_requested(runs, k.run) AND lib.is_requested(ranks, k.rank)
    )
SELECT t.run, t.rank, t.thread.pid AS pid, t.thread.tid AS tid
FROM _threads AS t
