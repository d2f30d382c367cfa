-- Host activity on launching threads while devices wait for them: each waiting interval split into stretches with the
-- same open events.
--
-- Time is measured in idle time of the waiting device: the length of an event is the idle time that passes during it.
-- Events during device work therefore have no length, and stretches sum exactly to the idle time. If events of a
-- thread overlap without nesting, the time after the end of an event belongs to its parent.
CREATE OR REPLACE MACRO lib._host_stretches(
    runs,
    ranks,
    -- Name of a relation with the columns of lib.idle_parts: intervals that do not overlap.
    idle_spans,
    -- Whether to look up the outermost operator.
    with_outer_op
) AS TABLE
-- Columns:
--   part             BIGINT [1]   Number of the waiting interval.
--   dur              BIGINT [ns]  Length of the stretch, above 0.
--   before_ns        BIGINT [ns]  Idle time of the device before the stretch, in all intervals in which the thread launches the next operation.
--   event_id         BIGINT       Innermost open event; NULL if there is none.
--   is_call          BOOLEAN      Whether that event is a runtime call.
--   is_loading       BOOLEAN      Whether a data loader is open.
--   is_saving        BOOLEAN      Whether a checkpoint is being saved.
--   op_name          VARCHAR      Innermost operator; NULL if none is open, as in the following columns.
--   outer_op_name    VARCHAR      Outermost operator; NULL if not looked up.
--   call_name        VARCHAR      Name of the runtime call.
--   inner_name       VARCHAR      Innermost operator, annotation or frame.
--   inner_kind       VARCHAR      Kind of inner_name: op, annotation or frame.
--   annotation_name  VARCHAR      Innermost annotation other than a step.
--   frame_name       VARCHAR      Innermost Python frame.
--   module_name      VARCHAR      Innermost nn.Module, without the prefix.
WITH
    _lanes AS MATERIALIZED (
        SELECT d.*, row_number() OVER (ORDER BY d.run, d.rank, d.pid, d.tid) AS lane
        FROM (SELECT DISTINCT p.run, p.rank, p.pid, p.tid FROM query_table(idle_spans) AS p) AS d
    ),
    -- One number identifies run, rank and thread: searching by five columns takes three times as long.
    _summed AS MATERIALIZED (
        SELECT l.lane, p.part, p.ts, p.dur, (sum(p.dur) OVER (PARTITION BY l.lane ORDER BY p.ts) - p.dur)::BIGINT AS before
        FROM query_table(idle_spans) AS p
        JOIN _lanes AS l ON l.run = p.run AND l.rank = p.rank AND l.pid IS NOT DISTINCT FROM p.pid AND l.tid IS NOT DISTINCT FROM p.tid
    ),
    _totals AS (
        SELECT s.lane, sum(s.dur)::BIGINT AS total
        FROM _summed AS s
        GROUP BY s.lane
    ),
    _frames AS (
        SELECT p.run, p.rank, p.event_id, p.ts, p.dur, p.pid, p.tid, p.name, p.parent_module_id, coalesce(q.event_id, p.parent_id) AS parent_id
        FROM python_calls AS p
        LEFT JOIN python_calls AS q ON q.run = p.run AND q.rank = p.rank AND q.span = p.span AND q.python_id = p.python_parent_id
        WHERE lib.is_requested(runs, p.run) AND lib.is_requested(ranks, p.rank)
    ),
    -- parent_id is the innermost enclosing span of the same kind. A call to a module is both a module and a frame.
    _spans AS (
        SELECT c.run, c.rank, c.pid, c.tid, c.event_id, c.ts, c.dur, c.name, 'op' AS kind, c.parent_op_id AS parent_id FROM cpu_ops AS c
        UNION ALL
        SELECT r.run, r.rank, r.pid, r.tid, r.event_id, r.ts, r.dur, r.name, 'call', r.parent_id FROM runtime_calls AS r
        UNION ALL
        SELECT a.run, a.rank, a.pid, a.tid, a.event_id, a.ts, a.dur, a.name, 'annotation', a.parent_annotation_id
        FROM annotations AS a
        WHERE NOT a.on_gpu AND NOT starts_with(a.name, 'ProfilerStep#')
        UNION ALL
        SELECT f.run, f.rank, f.pid, f.tid, f.event_id, f.ts, f.dur, f.name, 'frame', f.parent_id FROM _frames AS f
        UNION ALL
        SELECT f.run, f.rank, f.pid, f.tid, f.event_id, f.ts, f.dur, f.name, 'module', f.parent_module_id
        FROM _frames AS f
        WHERE starts_with(f.name, 'nn.Module: ')
    ),
    _events AS (
        SELECT l.lane, s.event_id, s.ts, s.ts + s.dur AS end_ts, s.name, s.kind, s.parent_id
        FROM _spans AS s
        JOIN _lanes AS l ON l.run = s.run AND l.rank = s.rank AND l.pid IS NOT DISTINCT FROM s.pid AND l.tid IS NOT DISTINCT FROM s.tid
        WHERE s.dur > 0
    ),
    -- Numbers increase with the start time; for equal start times, from outermost to innermost.
    _kept AS MATERIALIZED (
        SELECT
            e.*,
            coalesce(a.before + least(e.ts - a.ts, a.dur), 0) AS from_ns,
            coalesce(b.before + least(e.end_ts - b.ts, b.dur), 0) AS to_ns,
            row_number() OVER (ORDER BY e.lane, e.ts, e.end_ts DESC, e.event_id, e.kind) AS n
        FROM _events AS e
        ASOF LEFT JOIN _summed AS a ON a.lane = e.lane AND e.ts >= a.ts
        ASOF LEFT JOIN _summed AS b ON b.lane = e.lane AND e.end_ts >= b.ts
        WHERE coalesce(b.before + least(e.end_ts - b.ts, b.dur), 0) > coalesce(a.before + least(e.ts - a.ts, a.dur), 0)
    ),
    _linked AS (
        SELECT
            k.lane, k.from_ns, k.to_ns, k.ts, k.end_ts, k.n, k.kind, coalesce(p.n, 0) AS parent_n,
            CASE
                WHEN k.kind = 'annotation' AND lib.loads_data(k.name) THEN 1
                WHEN k.kind = 'frame' AND contains(k.name, 'torch/utils/data/') THEN 1
                -- Older recorders write data loader annotations as operators.
                WHEN k.kind = 'op' AND starts_with(k.name, 'enumerate(DataLoader)#') THEN 1
                ELSE 0
            END AS loads,
            CASE
                WHEN k.kind = 'annotation' AND lib.host_purpose(k.name) = 'checkpoint' THEN 1
                WHEN k.kind = 'frame' AND (lib.is_torch_save(k.name) OR regexp_matches(k.name, '(^|/)torch/distributed/checkpoint/')) THEN 1
                ELSE 0
            END AS saves
        FROM _kept AS k
        LEFT JOIN _kept AS p ON p.lane = k.lane AND p.event_id = k.parent_id AND p.kind = k.kind
    ),
    -- An event becomes the innermost of its kind at its start and is replaced by its parent at its end. Ends precede
    -- starts; simultaneous ends are ordered from innermost to outermost, simultaneous starts from outermost to
    -- innermost.
    _points AS (
        SELECT l.lane, l.from_ns AS at_ns, l.ts, l.n AS position, l.kind, l.n, l.loads, l.saves, l.parent_n = 0 AS is_outer, l.n AS outer_n, NULL::BIGINT AS part
        FROM _linked AS l
        UNION ALL
        SELECT l.lane, l.to_ns, l.end_ts, -l.n, l.kind, l.parent_n, -l.loads, -l.saves, l.parent_n = 0, 0, NULL
        FROM _linked AS l
        UNION ALL
        SELECT s.lane, s.before, s.ts, 0, NULL, NULL, 0, 0, false, NULL, s.part
        FROM _summed AS s
    ),
    -- All threads in one sequence, because windows over rows in input order need no sort.
    _placed AS (
        SELECT o.*, row_number() OVER () AS nth, lag(o.lane) OVER () IS DISTINCT FROM o.lane AS is_first
        FROM (FROM _points AS p ORDER BY p.lane, p.at_ns, p.ts, p.position) AS o
    ),
    -- Latest event of each kind, as the maximum of position and number packed together. last_value(… IGNORE NULLS)
    -- would scan back over all rows of a thread for kinds that are rare on it.
    _latest AS (
        SELECT
            p.lane,
            p.at_ns,
            CASE WHEN lead(p.lane) OVER () = p.lane THEN lead(p.at_ns) OVER () END AS next_ns,
            -- Smaller values belong to a previous thread.
            max(CASE WHEN p.is_first THEN p.nth << 32 END) OVER (ROWS UNBOUNDED PRECEDING) AS first,
            max(p.nth << 32 | p.part) OVER (ROWS UNBOUNDED PRECEDING) AS part,
            max(CASE WHEN p.kind = 'op' THEN p.nth << 32 | p.n END) OVER (ROWS UNBOUNDED PRECEDING) AS op,
            max(CASE WHEN with_outer_op AND p.kind = 'op' AND p.is_outer THEN p.nth << 32 | p.outer_n END) OVER (ROWS UNBOUNDED PRECEDING) AS outer_op,
            max(CASE WHEN p.kind = 'call' THEN p.nth << 32 | p.n END) OVER (ROWS UNBOUNDED PRECEDING) AS call,
            max(CASE WHEN p.kind = 'annotation' THEN p.nth << 32 | p.n END) OVER (ROWS UNBOUNDED PRECEDING) AS annotation,
            max(CASE WHEN p.kind = 'frame' THEN p.nth << 32 | p.n END) OVER (ROWS UNBOUNDED PRECEDING) AS frame,
            max(CASE WHEN p.kind = 'module' THEN p.nth << 32 | p.n END) OVER (ROWS UNBOUNDED PRECEDING) AS module,
            sum(p.loads) OVER (ROWS UNBOUNDED PRECEDING) AS loads,
            sum(p.saves) OVER (ROWS UNBOUNDED PRECEDING) AS saves
        FROM _placed AS p
    ),
    _states AS (
        SELECT
            l.lane, l.at_ns, l.next_ns, l.loads, l.saves,
            CASE WHEN l.part >= l.first THEN l.part & 4294967295 END AS part,
            CASE WHEN l.op >= l.first THEN l.op & 4294967295 ELSE 0 END AS op_n,
            CASE WHEN l.outer_op >= l.first THEN l.outer_op & 4294967295 ELSE 0 END AS outer_n,
            CASE WHEN l.call >= l.first THEN l.call & 4294967295 ELSE 0 END AS call_n,
            CASE WHEN l.annotation >= l.first THEN l.annotation & 4294967295 ELSE 0 END AS annotation_n,
            CASE WHEN l.frame >= l.first THEN l.frame & 4294967295 ELSE 0 END AS frame_n,
            CASE WHEN l.module >= l.first THEN l.module & 4294967295 ELSE 0 END AS module_n
        FROM _latest AS l
    ),
    _stretches AS (
        SELECT
            s.*, coalesce(s.next_ns, t.total) - s.at_ns AS dur,
            greatest(s.op_n, s.call_n, s.annotation_n, s.frame_n) AS innermost_n, greatest(s.op_n, s.annotation_n, s.frame_n) AS inner_n
        FROM _states AS s
        JOIN _totals AS t ON t.lane = s.lane
        WHERE coalesce(s.next_ns, t.total) > s.at_ns
    )
SELECT
    s.part, s.dur, s.at_ns AS before_ns,
    CASE s.innermost_n WHEN 0 THEN NULL WHEN s.op_n THEN o.event_id WHEN s.call_n THEN c.event_id WHEN s.annotation_n THEN a.event_id ELSE f.event_id END AS event_id,
    s.innermost_n > 0 AND s.innermost_n = s.call_n AS is_call, s.loads > 0 AS is_loading, s.saves > 0 AS is_saving,
    o.name AS op_name, u.name AS outer_op_name, c.name AS call_name,
    CASE s.inner_n WHEN 0 THEN NULL WHEN s.op_n THEN o.name WHEN s.annotation_n THEN a.name ELSE f.name END AS inner_name,
    CASE s.inner_n WHEN 0 THEN NULL WHEN s.op_n THEN 'op' WHEN s.annotation_n THEN 'annotation' ELSE 'frame' END AS inner_kind,
    a.name AS annotation_name, f.name AS frame_name,
    lib.module_name(m.name) AS module_name
FROM _stretches AS s
LEFT JOIN _kept AS o ON o.n = s.op_n
LEFT JOIN _kept AS u ON with_outer_op AND u.n = s.outer_n
LEFT JOIN _kept AS c ON c.n = s.call_n
LEFT JOIN _kept AS a ON a.n = s.annotation_n
LEFT JOIN _kept AS f ON f.n = s.frame_n
LEFT JOIN _kept AS m ON m.n = s.module_n
