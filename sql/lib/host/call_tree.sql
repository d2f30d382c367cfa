-- Call trees of host threads with the operations that they launched, for call_stack, call_stack_threads and
-- event_stack.
--
-- Rows are numbered in depth-first order, so everything below an event follows it without a gap. Subtrees are window
-- frames, so sums over them need no recursion at any stack depth. An event opens its level, and the next row of the
-- same or a smaller depth closes the level. Openings and closings of one level alternate, so the next row of the same
-- level after an opening is its closing.
--
-- Device activity is placed below the call that launched it; operations without a launch in the trace are in no tree.
-- Autograd runs the backward pass on threads of its own. With joins_backward, their outermost events are attached
-- below the enclosing annotation "## backward ##" of the main thread. Without such an annotation, they are attached
-- below the profiler step of the main thread (HTA's rule, for any number of such threads).
CREATE OR REPLACE MACRO lib.call_tree(
    runs,
    ranks,
    include_last_profiler_step,
    -- Whether to attach autograd threads below the main thread.
    joins_backward
) AS TABLE
-- Columns:
--   run            VARCHAR          Run name.
--   rank           INTEGER          Rank of the process.
--   tree_id        BIGINT [1]       Number of the tree within the rank, from 1: a thread, or a main thread with its backward threads.
--   thread_id      BIGINT [1]       Number of the thread within the rank, from 1; for device activity, number of the launching thread.
--   label          VARCHAR          Role of the thread: main (has the profiler steps), backward (autograd) or other.
--   position       BIGINT [1]       Position in the depth-first order over all trees, from 1.
--   next_position  BIGINT [1]       Position of the first later event that is not below this event.
--   event_id       BIGINT           Position of the event in traceEvents.
--   table_name     VARCHAR          Table with the event's other columns.
--   name           VARCHAR          Name of the event.
--   pid            BIGINT           Process id; for device activity, the device.
--   tid            BIGINT           Thread id; for device activity, the stream.
--   ts             BIGINT [ns]      Start, relative to the run's first event.
--   dur            BIGINT [ns]      Duration.
--   step           BIGINT           Profiler step.
--   parent_id      BIGINT           event_id of the parent event.
--   depth          INTEGER [count]  Number of events above; 0 at the top.
--   is_top         BOOLEAN          Whether the event is a host event that no other event of its thread encloses.
WITH
    _host AS (
        SELECT h.run, h.rank, h.pid, h.tid, h.ts, h.dur, h.event_id, h.table_name, h.name, h.parent_id, h.depth, h.step
        FROM lib.host_events(runs, ranks) AS h
        WHERE include_last_profiler_step OR NOT h.in_last_step
    ),
    _threads AS (
        SELECT
            h.run,
            h.rank,
            h.pid,
            h.tid,
            row_number() OVER (PARTITION BY h.run, h.rank ORDER BY h.pid, h.tid) AS thread_id,
            bool_or(starts_with(h.name, 'ProfilerStep')) AS is_main,
            bool_or(contains(h.name, 'autograd::')) AND NOT is_main AS is_backward
        FROM _host AS h
        GROUP BY h.run, h.rank, h.pid, h.tid
    ),
    _events AS (
        SELECT
            t.thread_id,
            t.is_backward AND joins_backward AS may_move,
            CASE WHEN t.is_main THEN 'main' WHEN t.is_backward THEN 'backward' ELSE 'other' END AS label,
            h.*,
            -- Order in the call tree: by start; for equal starts, longer events first, then by event_id.
            row_number() OVER (ORDER BY h.run, h.rank, t.thread_id, h.ts, h.dur DESC, h.event_id) AS place
        FROM _host AS h
        JOIN _threads AS t ON t.run = h.run AND t.rank = h.rank AND t.pid IS NOT DISTINCT FROM h.pid AND t.tid IS NOT DISTINCT FROM h.tid
    ),
    _marks AS (
        SELECT e.run, e.rank, e.thread_id, e.event_id, e.ts, e.ts + e.dur AS end_ts, e.depth, e.place
        FROM _events AS e
        WHERE e.label = 'main' AND (starts_with(e.name, '## backward ##') OR starts_with(e.name, 'ProfilerStep'))
        QUALIFY
            starts_with(e.name, '## backward ##') = bool_or(starts_with(e.name, '## backward ##')) OVER (PARTITION BY e.run, e.rank)
            AND min(e.thread_id) OVER (PARTITION BY e.run, e.rank) = max(e.thread_id) OVER (PARTITION BY e.run, e.rank)
    ),
    _moves AS (
        SELECT e.place AS root_place, arg_max({'tree_id': m.thread_id, 'id': m.event_id, 'depth': m.depth, 'place': m.place}, m.place) AS mark
        FROM _events AS e
        JOIN _marks AS m ON m.run = e.run AND m.rank = e.rank AND m.ts <= e.ts AND m.end_ts >= e.ts + e.dur
        WHERE e.may_move AND e.depth = 0
        GROUP BY e.place
    ),
    _rooted AS (
        SELECT
            e.*,
            max(CASE WHEN e.depth = 0 THEN e.place END) OVER (PARTITION BY e.run, e.rank, e.thread_id ORDER BY e.place) AS root_place
        FROM _events AS e
        WHERE e.may_move
    ),
    _placed AS (
        SELECT e.* EXCLUDE (may_move), NULL AS mark
        FROM _events AS e
        WHERE NOT e.may_move
        UNION ALL
        SELECT e.* EXCLUDE (may_move, root_place), m.mark
        FROM _rooted AS e
        LEFT JOIN _moves AS m ON m.root_place = e.root_place
    ),
    _nodes AS (
        SELECT
            coalesce(p.mark.tree_id, p.thread_id) AS tree_id,
            coalesce(p.mark.place, p.place) AS anchor,
            CASE WHEN p.mark IS NULL THEN 0 ELSE p.thread_id END AS moved,
            p.place,
            0 AS on_gpu,
            p.thread_id,
            p.label,
            p.run,
            p.rank,
            p.event_id,
            p.table_name,
            p.name,
            p.pid,
            p.tid,
            p.ts,
            p.dur,
            p.step,
            coalesce(p.parent_id, p.mark.id) AS parent_id,
            p.depth + coalesce(p.mark.depth + 1, 0) AS depth,
            p.depth = 0 AS is_top
        FROM _placed AS p
    ),
    _all_nodes AS (
        SELECT n.* FROM _nodes AS n
        UNION ALL
        SELECT
            n.tree_id, n.anchor, n.moved, n.place, 1 AS on_gpu, n.thread_id, n.label,
            g.run, g.rank, g.event_id, 'gpu_ops', g.name, g.device, g.stream, g.ts, g.dur, g.step, g.launch_id, n.depth + 1, false
        FROM lib.scoped_gpu_ops(runs, ranks, NULL, include_last_profiler_step) AS g
        JOIN _nodes AS n ON n.run = g.run AND n.rank = g.rank AND n.event_id = g.launch_id
    ),
    _walk AS (
        SELECT
            n.*,
            row_number() OVER (ORDER BY n.run, n.rank, n.tree_id, n.anchor, n.moved, n.place, n.on_gpu, n.ts, n.event_id) AS position
        FROM _all_nodes AS n
    ),
    _levels AS (
        SELECT w.run, w.rank, w.tree_id, w.position, w.depth, lag(w.depth) OVER (PARTITION BY w.run, w.rank, w.tree_id ORDER BY w.position) AS depth_before
        FROM _walk AS w
    ),
    _turns AS (
        SELECT l.run, l.rank, l.tree_id, l.depth AS level, l.position, true AS opens FROM _levels AS l
        UNION ALL
        SELECT l.run, l.rank, l.tree_id, unnest(range(l.depth, l.depth_before + 1))::INTEGER, l.position, false
        FROM _levels AS l
        WHERE l.depth <= l.depth_before
    ),
    _closings AS (
        SELECT
            t.opens,
            t.position,
            lead(t.position) OVER (PARTITION BY t.run, t.rank, t.tree_id, t.level ORDER BY t.position, t.opens) AS next_position
        FROM _turns AS t
    ),
    _ends AS (
        SELECT w.run, w.rank, w.tree_id, max(w.position) + 1 AS end_position
        FROM _walk AS w
        GROUP BY w.run, w.rank, w.tree_id
    )
SELECT
    w.run,
    w.rank,
    w.tree_id,
    w.thread_id,
    w.label,
    w.position,
    coalesce(c.next_position, e.end_position) AS next_position,
    w.event_id,
    w.table_name,
    w.name,
    w.pid,
    w.tid,
    w.ts,
    w.dur,
    w.step,
    w.parent_id,
    w.depth,
    w.is_top
FROM _walk AS w
JOIN _closings AS c ON c.opens AND c.position = w.position
JOIN _ends AS e ON e.run = w.run AND e.rank = w.rank AND e.tree_id = w.tree_id
