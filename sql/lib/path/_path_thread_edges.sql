-- Edges of a critical path graph on the host: along each thread, and between threads.
--
-- - operator: inside operators and calls.
-- - dependency (weight 0): from one outermost operator of a thread to the next. Also from a thread to the thread that
--   runs its backward pass and back, when one continues while the other is inactive. Also between overlapping launch
--   calls of two threads, in the order in which they return. The last part of a waiting call has no weight.
CREATE OR REPLACE MACRO lib._path_thread_edges(
    -- Name of a relation with the columns of lib.critical_path_nodes.
    path_nodes,
    runs,
    ranks
) AS TABLE
-- Columns:
--   run             VARCHAR      Run name.
--   rank            INTEGER      Rank of the process.
--   begin_node_id   BIGINT       Node that must complete first.
--   end_node_id     BIGINT       Node that depends on it.
--   edge_type       VARCHAR      Type of the edge: operator or dependency.
--   weight          BIGINT [ns]  Duration of the edge.
--   begin_event_id  BIGINT       event_id of the first node.
--   end_event_id    BIGINT       event_id of the second node.
--   event_id        BIGINT       event_id of the event that the duration belongs to; NULL for dependencies.
WITH
    -- Along each host thread: an edge from every node to the next.
    _thread_nodes AS MATERIALIZED (
        SELECT
            n.run, n.rank, n.node_id, n.event_id, n.is_start, n.node_ts, n.parent_id, n.pid, n.tid,
            sum(CASE WHEN n.is_start THEN 1 ELSE -1 END) OVER (_thread ROWS UNBOUNDED PRECEDING) AS open_count,
            lead(n.node_id) OVER _thread AS next_node_id,
            lead(n.event_id) OVER _thread AS next_event_id,
            lead(n.is_start) OVER _thread AS next_is_start,
            lead(n.node_ts) OVER _thread AS next_ts,
            lead(n.parent_id) OVER _thread AS next_parent_id,
            lead(n.is_blocking) OVER _thread AS next_is_blocking
        FROM query_table(path_nodes) AS n
        WHERE n.kind <> 'gpu'
        WINDOW _thread AS (PARTITION BY n.run, n.rank, lib.span_of(n.event_id), n.pid, n.tid ORDER BY n.node_id)
    ),
    -- A recording continues where the previous one ended; the time between recordings belongs to none of them.
    _seams AS (
        SELECT
            n.run, n.rank,
            arg_max({'id': n.node_id, 'event_id': n.event_id}, n.node_id) AS last,
            lead(arg_min({'id': n.node_id, 'event_id': n.event_id}, n.node_id)) OVER (
                PARTITION BY n.run, n.rank ORDER BY lib.span_of(n.event_id)
            ) AS next
        FROM query_table(path_nodes) AS n
        GROUP BY n.run, n.rank, lib.span_of(n.event_id)
    ),
    _thread_edges AS (
        SELECT
            t.run, t.rank, t.node_id AS begin_node_id, t.next_node_id AS end_node_id,
            CASE WHEN t.open_count > 0 THEN 'operator' ELSE 'dependency' END AS edge_type,
            CASE
                WHEN t.open_count = 0 THEN 0
                WHEN NOT t.next_is_start AND t.next_is_blocking THEN 0
                ELSE t.next_ts - t.node_ts
            END AS weight,
            t.event_id AS begin_event_id, t.next_event_id AS end_event_id,
            CASE
                WHEN t.open_count = 0 THEN NULL
                WHEN t.is_start THEN t.event_id
                WHEN NOT t.next_is_start THEN t.next_event_id
                ELSE coalesce(t.parent_id, t.next_parent_id, t.next_event_id)
            END AS event_id
        FROM _thread_nodes AS t
        WHERE t.next_node_id IS NOT NULL
    ),
    -- Threads that run the backward pass of exactly one other thread.
    _backward_threads AS (
        SELECT b.run, b.rank, b.pid, b.tid, min(f.pid) AS forward_pid, min(f.tid) AS forward_tid
        FROM cpu_ops AS b
        JOIN cpu_ops AS f ON f.run = b.run AND f.rank = b.rank AND f.event_id = b.fwd_op_id
        WHERE lib.is_requested(runs, b.run) AND lib.is_requested(ranks, b.rank)
        GROUP BY b.run, b.rank, b.pid, b.tid
        HAVING count(DISTINCT (f.pid, f.tid)) = 1 AND (min(f.pid), min(f.tid)) <> (b.pid, b.tid)
    ),
    _lanes AS (
        SELECT b.run, b.rank, b.pid, b.tid, b.forward_pid, b.forward_tid
        FROM _backward_threads AS b
        UNION
        SELECT b.run, b.rank, b.forward_pid, b.forward_tid, b.forward_pid, b.forward_tid
        FROM _backward_threads AS b
    ),
    -- Points at which a thread becomes active or inactive; nested events change neither.
    _lane_nodes AS (
        SELECT
            n.run, n.rank, n.node_id, n.event_id, n.pid, n.tid,
            sum(CASE WHEN n.is_start THEN 1 ELSE -1 END) OVER (_lane ROWS UNBOUNDED PRECEDING) AS open_count,
            lead({'node_id': n.node_id, 'event_id': n.event_id, 'pid': n.pid, 'tid': n.tid}) OVER _lane AS following
        FROM _thread_nodes AS n
        JOIN _lanes AS l ON l.run = n.run AND l.rank = n.rank AND l.pid = n.pid AND l.tid = n.tid
        WHERE n.open_count = CASE WHEN n.is_start THEN 1 ELSE 0 END
        WINDOW _lane AS (PARTITION BY n.run, n.rank, lib.span_of(n.event_id), l.forward_pid, l.forward_tid ORDER BY n.node_id)
    ),
    _handovers AS (
        SELECT
            l.run, l.rank, l.node_id AS begin_node_id, l.following.node_id AS end_node_id,
            l.event_id AS begin_event_id, l.following.event_id AS end_event_id
        FROM _lane_nodes AS l
        WHERE l.open_count = 0 AND l.following.node_id IS NOT NULL AND (l.pid, l.tid) <> (l.following.pid, l.following.tid)
    ),
    -- The driver serves one call at a time, so the call that returns later waited for the other overlapping call. For
    -- an end node, ts is the start of its event.
    _lock_calls AS (
        SELECT
            n.run, n.rank, n.node_id, n.event_id, n.ts AS start_ts, n.tid,
            lag({'node_id': n.node_id, 'event_id': n.event_id, 'ts': n.node_ts, 'tid': n.tid}) OVER (
                PARTITION BY n.run, n.rank, lib.span_of(n.event_id), n.pid ORDER BY n.node_id
            ) AS previous
        FROM query_table(path_nodes) AS n
        WHERE n.takes_lock AND NOT n.is_start
    ),
    _locks AS (
        SELECT
            c.run, c.rank, c.previous.node_id AS begin_node_id, c.node_id AS end_node_id,
            c.previous.event_id AS begin_event_id, c.event_id AS end_event_id
        FROM _lock_calls AS c
        WHERE c.previous.tid <> c.tid AND c.start_ts < c.previous.ts
    )
SELECT t.*
FROM _thread_edges AS t
UNION ALL
SELECT b.run, b.rank, b.last.id, b.next.id, 'dependency', 0, b.last.event_id, b.next.event_id, NULL
FROM _seams AS b
WHERE b.next IS NOT NULL
UNION ALL
SELECT h.run, h.rank, h.begin_node_id, h.end_node_id, 'dependency', 0, h.begin_event_id, h.end_event_id, NULL
FROM _handovers AS h
UNION ALL
SELECT k.run, k.rank, k.begin_node_id, k.end_node_id, 'dependency', 0, k.begin_event_id, k.end_event_id, NULL
FROM _locks AS k
