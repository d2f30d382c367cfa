-- Nodes of execution traces with the event at the same position on the thread, for nodes whose ids do not match the
-- ids in the trace.
--
-- The nodes of a thread are consecutive calls. Pairs of a node and an event with the same name and autograd sequence
-- number show how many events precede the first node; most pairs must agree on this number. A thread is excluded if
-- fewer than half of its nodes have the name of their event, because the trace belongs to a different program.
CREATE OR REPLACE MACRO lib._ordered_nodes(
    runs,
    ranks
) AS TABLE
-- Columns:
--   run       VARCHAR  Run name.
--   rank      INTEGER  Rank of the process.
--   node_id   BIGINT   Node, in et_nodes.
--   event_id  BIGINT   event_id of the event at the node's position; NULL if that event has a different name.
WITH
    _calls AS MATERIALIZED (
        SELECT
            n.run, n.rank, n.node_id, n.name, n.thread_number, n.sequence_number,
            row_number() OVER (PARTITION BY n.run, n.rank, n.thread_number ORDER BY n.record_function_id, n.node_id) AS position
        FROM et_nodes AS n
        WHERE n.record_function_id > 0 AND lib.is_requested(runs, n.run) AND lib.is_requested(ranks, n.rank)
    ),
    _host AS (
        SELECT c.run, c.rank, c.event_id, c.name, c.pid, c.tid, c.ts, c.dur, c.sequence_number
        FROM cpu_ops AS c
        SEMI JOIN _calls AS n ON n.run = c.run AND n.rank = c.rank
        UNION ALL
        SELECT a.run, a.rank, a.event_id, a.name, a.pid, a.tid, a.ts, a.dur, NULL
        FROM annotations AS a
        SEMI JOIN _calls AS n ON n.run = a.run AND n.rank = a.rank
        WHERE NOT a.on_gpu
    ),
    _events AS MATERIALIZED (
        SELECT h.*, row_number() OVER (PARTITION BY h.run, h.rank, h.pid, h.tid ORDER BY h.ts, h.dur DESC, h.event_id) AS position
        FROM _host AS h
    ),
    _votes AS (
        SELECT n.run, n.rank, n.thread_number, h.pid, h.tid, h.position - n.position AS events_before, count(DISTINCT n.node_id) AS vote_count
        FROM _calls AS n
        JOIN _events AS h ON h.run = n.run AND h.rank = n.rank AND h.name = n.name AND h.sequence_number = n.sequence_number
        WHERE n.sequence_number > 0
        GROUP BY ALL
    ),
    _anchored AS (
        SELECT n.run, n.rank, n.thread_number, count(*) AS anchor_count
        FROM _calls AS n
        WHERE n.sequence_number > 0
        GROUP BY n.run, n.rank, n.thread_number
    ),
    _shifts AS (
        SELECT v.run, v.rank, v.thread_number, v.pid, v.tid, v.events_before
        FROM _votes AS v
        JOIN _anchored AS a ON a.run = v.run AND a.rank = v.rank AND a.thread_number = v.thread_number
        WHERE 2 * v.vote_count > a.anchor_count
        -- A thread with a tie between positions is excluded.
        QUALIFY
            v.vote_count = max(v.vote_count) OVER (PARTITION BY v.run, v.rank, v.thread_number)
            AND count(*) OVER (PARTITION BY v.run, v.rank, v.thread_number, v.vote_count) = 1
    ),
    _placed AS (
        SELECT n.run, n.rank, n.thread_number, n.node_id, CASE WHEN h.name = n.name THEN h.event_id END AS event_id
        FROM _calls AS n
        JOIN _shifts AS s ON s.run = n.run AND s.rank = n.rank AND s.thread_number = n.thread_number
        LEFT JOIN _events AS h ON
            h.run = n.run AND h.rank = n.rank AND h.pid = s.pid AND h.tid = s.tid AND h.position = n.position + s.events_before
    )
SELECT p.run, p.rank, p.node_id, p.event_id
FROM _placed AS p
QUALIFY 2 * count(p.event_id) OVER (PARTITION BY p.run, p.rank, p.thread_number) >= count(*) OVER (PARTITION BY p.run, p.rank, p.thread_number)
