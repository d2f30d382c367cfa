-- What had to happen before what: the edges of a critical path, between the nodes of
-- lib.critical_path_nodes.
--
-- operator: along a host thread inside of operators, and along a device operation. dependency
-- (weight 0): from one outermost operator of a thread to the next; from a thread to the one that
-- runs its backward pass and back, where one goes on when the other rests; between launching calls
-- of two threads that overlap, in the order in which they return. kernel_launch_delay: from the start of a call to
-- what it launched, if the stream was idle by then. kernel_kernel_delay: else, from the end of what
-- had ended last on the stream; where the operation before still runs, its time until then counts as
-- operator (HTA adds up both in full, Q55). sync_dependency (weight 0): from a device operation to the call that
-- waits for it, or to the first operation of a stream behind a wait for it. A waiting call's own last
-- stretch weighs nothing.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib.critical_path_edges(
    -- Runs to include; NULL means every run.
    runs,
    -- Ranks to include; NULL means every rank.
    ranks,
    -- Profiler steps to include; NULL means every step and what lies outside of steps.
    steps,
    -- Whether to include the last profiler step.
    include_last_profiler_step,
    -- Text in the name of the host events that span the window; NULL or empty means everything.
    annotation,
    -- Number of the first of these events, in order of time, from 0.
    first_instance,
    -- Number of the last one; NULL means the first one alone.
    last_instance,
    -- Texts in the names of ranges and Python frames that load data; NULL means none.
    data_load_names,
    -- Whether every device operation depends on its launch (weight 0) where no delay says so.
    include_launch_edges,
    -- Whether waits without a record are told from what ended while they lasted.
    infer_syncs
) AS TABLE
-- Columns:
--   run             VARCHAR      Run name.
--   rank            INTEGER      Rank of the process.
--   begin_node_id   BIGINT       Node that has to come first.
--   end_node_id     BIGINT       Node that depends on it.
--   edge_type       VARCHAR      operator, dependency, kernel_launch_delay, kernel_kernel_delay or sync_dependency.
--   weight          BIGINT [ns]  Time that the edge stands for.
--   begin_event_id  BIGINT       Event of the first node.
--   end_event_id    BIGINT       Event of the second node.
--   event_id        BIGINT       Event that the time belongs to; NULL for delays of launches and for dependencies.
--   bound_by        VARCHAR      cpu_bound, data_loading, gpu_compute_bound, gpu_communication_bound, gpu_kernel_kernel_overhead or gpu_kernel_launch_overhead; NULL for dependencies.
WITH
    _nodes AS MATERIALIZED (
        SELECT n.*
        FROM lib.critical_path_nodes(
            runs, ranks, steps, include_last_profiler_step, annotation, first_instance, last_instance, data_load_names
        ) AS n
    ),
    -- Both nodes of each event in one row. By grouping: a third table in a join on run, rank and event
    -- lets the engine join two of them on run and rank alone.
    _spans AS MATERIALIZED (
        SELECT
            n.run, n.rank, n.event_id, n.kind, n.class, n.pid, n.tid, n.device, n.stream, n.launch_id, n.is_blocking, n.takes_lock,
            n.ts AS start_ts, n.ts + n.dur AS end_ts, min(n.node_id) AS start_node, max(n.node_id) AS end_node
        FROM _nodes AS n
        GROUP BY ALL
    ),
    -- Along each host thread: one edge from every node to the next.
    _thread_nodes AS (
        SELECT
            n.run, n.rank, n.node_id, n.event_id, n.is_start, n.node_ts, n.parent_id, n.kind,
            sum(CASE WHEN n.is_start THEN 1 ELSE -1 END) OVER (_thread ROWS UNBOUNDED PRECEDING) AS open_count,
            lead({
                'node_id': n.node_id, 'event_id': n.event_id, 'is_start': n.is_start, 'ts': n.node_ts,
                'parent_id': n.parent_id, 'kind': n.kind, 'is_blocking': n.is_blocking
            }) OVER _thread AS following
        FROM _nodes AS n
        WHERE n.kind <> 'gpu'
        WINDOW _thread AS (PARTITION BY n.run, n.rank, n.pid, n.tid ORDER BY n.node_id)
    ),
    _thread_edges AS (
        SELECT
            t.run, t.rank, t.node_id AS begin_node_id, t.following.node_id AS end_node_id,
            CASE WHEN t.open_count > 0 THEN 'operator' ELSE 'dependency' END AS edge_type,
            CASE
                WHEN t.open_count = 0 THEN 0
                WHEN NOT t.following.is_start AND t.following.is_blocking THEN 0
                ELSE t.following.ts - t.node_ts
            END AS weight,
            t.event_id AS begin_event_id, t.following.event_id AS end_event_id,
            CASE
                WHEN t.open_count = 0 THEN NULL
                WHEN t.is_start THEN t.event_id
                WHEN NOT t.following.is_start THEN t.following.event_id
                ELSE coalesce(t.parent_id, t.following.parent_id, t.following.event_id)
            END AS event_id
        FROM _thread_nodes AS t
        WHERE t.following.node_id IS NOT NULL
    ),
    -- Threads that run the backward pass of exactly one other thread.
    _backward_threads AS (
        SELECT b.run, b.rank, b.pid, b.tid, min(f.pid) AS forward_pid, min(f.tid) AS forward_tid
        FROM cpu_ops AS b
        JOIN cpu_ops AS f ON f.run = b.run AND f.rank = b.rank AND f.event_id = b.fwd_op_id
        WHERE lib.wanted(runs, b.run) AND lib.wanted(ranks, b.rank)
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
    _lane_nodes AS (
        SELECT
            n.run, n.rank, n.node_id, n.event_id, n.pid, n.tid,
            sum(CASE WHEN n.is_start THEN 1 ELSE -1 END) OVER (_lane ROWS UNBOUNDED PRECEDING) AS open_count,
            lead({'node_id': n.node_id, 'event_id': n.event_id, 'pid': n.pid, 'tid': n.tid}) OVER _lane AS following
        FROM _nodes AS n
        JOIN _lanes AS l ON l.run = n.run AND l.rank = n.rank AND l.pid = n.pid AND l.tid = n.tid
        WHERE n.kind <> 'gpu'
        WINDOW _lane AS (PARTITION BY n.run, n.rank, l.forward_pid, l.forward_tid ORDER BY n.node_id)
    ),
    _handovers AS (
        SELECT
            l.run, l.rank, l.node_id AS begin_node_id, l.following.node_id AS end_node_id,
            l.event_id AS begin_event_id, l.following.event_id AS end_event_id
        FROM _lane_nodes AS l
        WHERE l.open_count = 0 AND l.following.node_id IS NOT NULL AND (l.pid, l.tid) <> (l.following.pid, l.following.tid)
    ),
    -- The driver serves one call at a time: of two that overlap, the later to return waited.
    _lock_calls AS (
        SELECT
            s.run, s.rank, s.end_node, s.event_id, s.start_ts, s.tid,
            lag({'node_id': s.end_node, 'event_id': s.event_id, 'ts': s.end_ts, 'tid': s.tid}) OVER (
                PARTITION BY s.run, s.rank, s.pid ORDER BY s.end_node
            ) AS previous
        FROM _spans AS s
        WHERE s.takes_lock
    ),
    _locks AS (
        SELECT
            c.run, c.rank, c.previous.node_id AS begin_node_id, c.end_node AS end_node_id,
            c.previous.event_id AS begin_event_id, c.event_id AS end_event_id
        FROM _lock_calls AS c
        WHERE c.previous.tid <> c.tid AND c.start_ts < c.previous.ts
    ),
    -- Device operations with their launch.
    _ops AS MATERIALIZED (
        SELECT s.*, l.start_node AS launch_node, l.start_ts AS launch_ts, l.end_node AS returned_node, l.is_blocking AS is_awaited,
            l.pid AS launch_pid, l.tid AS launch_tid
        FROM _spans AS s
        JOIN _spans AS l ON l.run = s.run AND l.rank = s.rank AND l.event_id = s.launch_id
        WHERE s.kind = 'gpu'
    ),
    -- What each call put into each stream: first to start and last to end, for a graph's many.
    _enqueued AS MATERIALIZED (
        SELECT
            o.run, o.rank, o.device, o.stream, o.launch_id, min(o.launch_ts) AS launch_ts,
            arg_min({'id': o.event_id, 'node': o.start_node}, o.start_node) AS first_op,
            arg_max({'id': o.event_id, 'node': o.end_node, 'ts': o.end_ts}, o.end_node) AS last_op
        FROM _ops AS o
        GROUP BY o.run, o.rank, o.device, o.stream, o.launch_id
    ),
    -- Records of waits: which call, and for which stream as it was when.
    _sync_calls AS MATERIALIZED (
        SELECT
            g.run, g.rank, coalesce(g.device, -1) AS device, g.stream, g.launch_id AS call_id, g.launch_ts AS call_ts,
            lower(coalesce(g.sync_kind, g.name)) AS what, g.wait_on_stream, g.wait_on_record_correlation
        FROM gpu_ops AS g
        WHERE
            g.class = 'sync'
            AND g.launch_id IS NOT NULL
            AND lib.wanted(runs, g.run)
            AND lib.wanted(ranks, g.rank)
    ),
    _syncs AS (
        SELECT s.*, r.ts AS recorded_ts
        FROM _sync_calls AS s
        LEFT JOIN runtime_calls AS r
            ON r.run = s.run AND r.rank = s.rank AND r.correlation = s.wait_on_record_correlation AND r.event_id <> s.call_id
    ),
    _streams AS (
        SELECT DISTINCT q.run, q.rank, q.device, q.stream
        FROM _enqueued AS q
    ),
    -- Each wait with the stream it waits for, up to what had been put there by when.
    _waits AS (
        SELECT s.run, s.rank, s.device, s.stream AS own_stream, s.call_id, s.call_ts, s.what, s.stream AS awaited_stream, s.call_ts AS until_ts
        FROM _syncs AS s
        WHERE s.what = 'stream sync'
        UNION ALL
        SELECT s.run, s.rank, s.device, NULL, s.call_id, s.call_ts, s.what, t.stream, s.call_ts
        FROM _syncs AS s
        JOIN _streams AS t ON t.run = s.run AND t.rank = s.rank AND t.device = s.device
        WHERE s.what = 'context sync'
        UNION ALL
        SELECT s.run, s.rank, s.device, s.stream, s.call_id, s.call_ts, s.what, s.wait_on_stream, s.recorded_ts
        FROM _syncs AS s
        WHERE s.what IN ('event sync', 'stream wait event') AND s.recorded_ts IS NOT NULL
    ),
    _awaited AS MATERIALIZED (
        SELECT w.*, q.last_op
        FROM _waits AS w
        ASOF JOIN _enqueued AS q
            ON q.run = w.run AND q.rank = w.rank AND q.device = w.device AND q.stream = w.awaited_stream AND w.until_ts > q.launch_ts
    ),
    -- Without a record: what ended last while the call waited, of what had been launched before it.
    _recorded_calls AS (
        SELECT DISTINCT s.run, s.rank, s.call_id
        FROM _sync_calls AS s
    ),
    _silent_calls AS (
        SELECT s.run, s.rank, s.event_id, s.start_ts, s.end_node
        FROM _spans AS s
        ANTI JOIN _recorded_calls AS c ON c.run = s.run AND c.rank = s.rank AND c.call_id = s.event_id
        WHERE infer_syncs AND s.is_blocking AND NOT s.takes_lock
    ),
    _inferred AS (
        SELECT c.run, c.rank, o.end_node AS begin_node_id, c.end_node AS end_node_id, o.event_id AS begin_event_id, c.event_id AS end_event_id
        FROM _silent_calls AS c
        ASOF JOIN _ops AS o ON o.run = c.run AND o.rank = c.rank AND c.end_node > o.end_node
        WHERE o.end_ts >= c.start_ts AND o.launch_ts < c.start_ts
    ),
    -- A wait of a stream without a record: for the operation that the same thread launched next, what
    -- had ended last on the device when it started, if that is of another stream and was launched
    -- before the wait.
    _silent_waits AS (
        SELECT c.run, c.rank, c.pid, c.tid, c.ts
        FROM runtime_calls AS c
        ANTI JOIN _recorded_calls AS r ON r.run = c.run AND r.rank = c.rank AND r.call_id = c.event_id
        WHERE
            infer_syncs
            AND regexp_matches(c.name, 'stream_?wait_?event', 'i')
            AND lib.wanted(runs, c.run)
            AND lib.wanted(ranks, c.rank)
    ),
    _waiting_ops AS (
        SELECT DISTINCT ON (o.run, o.rank, o.event_id) o.*, w.ts AS waited_ts
        FROM _silent_waits AS w
        ASOF JOIN _ops AS o
            ON o.run = w.run AND o.rank = w.rank AND o.launch_pid = w.pid AND o.launch_tid = w.tid AND w.ts < o.launch_ts
        ORDER BY o.run, o.rank, o.event_id, w.ts DESC
    ),
    _inferred_waits AS (
        SELECT w.run, w.rank, o.end_node AS begin_node_id, w.start_node AS end_node_id, o.event_id AS begin_event_id, w.event_id AS end_event_id, o.end_ts AS sync_ts
        FROM _waiting_ops AS w
        ASOF JOIN _ops AS o ON o.run = w.run AND o.rank = w.rank AND o.device = w.device AND w.start_node > o.end_node
        WHERE o.stream <> w.stream AND o.launch_ts < w.waited_ts
    ),
    _call_syncs AS (
        SELECT a.run, a.rank, a.last_op.node AS begin_node_id, c.end_node AS end_node_id, a.last_op.id AS begin_event_id, a.call_id AS end_event_id
        FROM _awaited AS a
        JOIN _spans AS c ON c.run = a.run AND c.rank = a.rank AND c.event_id = a.call_id
        WHERE a.what <> 'stream wait event'
        UNION ALL
        -- A copy that had ended when its call returned.
        SELECT o.run, o.rank, o.end_node, o.returned_node, o.event_id, o.launch_id
        FROM _ops AS o
        WHERE o.is_awaited
        UNION ALL
        SELECT i.*
        FROM _inferred AS i
    ),
    _stream_syncs AS (
        SELECT DISTINCT
            a.run, a.rank, a.last_op.node AS begin_node_id, q.first_op.node AS end_node_id,
            a.last_op.id AS begin_event_id, q.first_op.id AS end_event_id, a.last_op.ts AS sync_ts
        FROM _awaited AS a
        ASOF JOIN _enqueued AS q
            ON q.run = a.run AND q.rank = a.rank AND q.device = a.device AND q.stream = a.own_stream AND a.call_ts < q.launch_ts
        -- A stream waits for itself anyway.
        WHERE a.what = 'stream wait event' AND a.own_stream <> a.awaited_stream AND a.last_op.node < q.first_op.node
        UNION
        SELECT i.*
        FROM _inferred_waits AS i
    ),
    _last_sync AS (
        SELECT s.run, s.rank, s.end_event_id, max(s.sync_ts) AS sync_ts
        FROM _stream_syncs AS s
        GROUP BY s.run, s.rank, s.end_event_id
    ),
    -- What each device operation came after on its stream: what had ended last, and, where it starts
    -- while the one before it still runs (programmatic launches, branches of a graph), that one.
    _successions AS MATERIALIZED (
        SELECT o.*, p.event_id AS ended_id, p.end_node AS ended_node, p.end_ts AS ended_ts
        FROM (
            SELECT
                s.*,
                lag({'id': s.event_id, 'start_node': s.start_node, 'end_node': s.end_node, 'ts': s.start_ts, 'class': s.class}) OVER (
                    PARTITION BY s.run, s.rank, s.device, s.stream ORDER BY s.start_node
                ) AS before
            FROM _ops AS s
        ) AS o
        ASOF LEFT JOIN _ops AS p
            ON p.run = o.run AND p.rank = o.rank AND p.device = o.device AND p.stream = o.stream AND o.start_node > p.end_node
    ),
    -- The latest of these, of the launch and of waits for other streams is what it starts after.
    _starts AS (
        SELECT
            s.*, y.sync_ts,
            coalesce(s.before.end_node > s.start_node, false) AS overlaps,
            CASE WHEN s.before.end_node > s.start_node THEN s.before.ts ELSE s.ended_ts END AS stream_ts,
            coalesce(s.launch_node < s.start_node AND greatest(stream_ts, y.sync_ts) < s.launch_ts, s.launch_node < s.start_node) AS is_launch_bound,
            coalesce(y.sync_ts >= stream_ts, false) AS is_sync_bound
        FROM _successions AS s
        LEFT JOIN _last_sync AS y ON y.run = s.run AND y.rank = s.rank AND y.end_event_id = s.event_id
    ),
    _attributed AS (
        SELECT t.*, NULL::VARCHAR AS class
        FROM _thread_edges AS t
        UNION ALL
        SELECT h.run, h.rank, h.begin_node_id, h.end_node_id, 'dependency', 0, h.begin_event_id, h.end_event_id, NULL, NULL
        FROM _handovers AS h
        UNION ALL
        SELECT k.run, k.rank, k.begin_node_id, k.end_node_id, 'dependency', 0, k.begin_event_id, k.end_event_id, NULL, NULL
        FROM _locks AS k
        UNION ALL
        SELECT o.run, o.rank, o.start_node, o.end_node, 'operator', o.end_ts - o.start_ts, o.event_id, o.event_id, o.event_id, o.class
        FROM _ops AS o
        UNION ALL
        SELECT s.run, s.rank, s.launch_node, s.start_node, 'kernel_launch_delay', CASE WHEN s.is_launch_bound THEN s.start_ts - s.launch_ts ELSE 0 END, s.launch_id, s.event_id, NULL, NULL
        FROM _starts AS s
        WHERE s.is_launch_bound OR (include_launch_edges AND s.launch_node < s.start_node)
        UNION ALL
        SELECT s.run, s.rank, s.ended_node, s.start_node, 'kernel_kernel_delay', s.start_ts - s.ended_ts, s.ended_id, s.event_id, s.ended_id, NULL
        FROM _starts AS s
        WHERE s.ended_node IS NOT NULL AND NOT s.overlaps AND NOT s.is_launch_bound AND NOT s.is_sync_bound
        UNION ALL
        SELECT s.run, s.rank, s.before.start_node, s.start_node, 'operator', s.start_ts - s.before.ts, s.before.id, s.event_id, s.before.id, s.before.class
        FROM _starts AS s
        WHERE s.overlaps AND NOT s.is_launch_bound AND NOT s.is_sync_bound
        UNION ALL
        SELECT DISTINCT c.run, c.rank, c.begin_node_id, c.end_node_id, 'sync_dependency', 0, c.begin_event_id, c.end_event_id, NULL, NULL
        FROM _call_syncs AS c
        WHERE c.begin_node_id < c.end_node_id
        UNION ALL
        SELECT s.run, s.rank, s.begin_node_id, s.end_node_id, 'sync_dependency', 0, s.begin_event_id, s.end_event_id, NULL, NULL
        FROM _stream_syncs AS s
    ),
    _data_loads AS (
        SELECT n.run, n.rank, n.event_id
        FROM _nodes AS n
        WHERE n.kind = 'data_load' AND n.is_start
    )
SELECT
    a.run,
    a.rank,
    a.begin_node_id,
    a.end_node_id,
    a.edge_type,
    a.weight::BIGINT AS weight,
    a.begin_event_id,
    a.end_event_id,
    a.event_id,
    CASE
        WHEN a.edge_type = 'kernel_launch_delay' THEN 'gpu_kernel_launch_overhead'
        WHEN a.edge_type = 'kernel_kernel_delay' THEN 'gpu_kernel_kernel_overhead'
        WHEN a.event_id IS NULL THEN NULL
        WHEN a.class = 'communication' THEN 'gpu_communication_bound'
        WHEN a.class IS NOT NULL THEN 'gpu_compute_bound'
        WHEN d.event_id IS NOT NULL THEN 'data_loading'
        ELSE 'cpu_bound'
    END AS bound_by
FROM _attributed AS a
LEFT JOIN _data_loads AS d ON d.run = a.run AND d.rank = a.rank AND d.event_id = a.event_id
