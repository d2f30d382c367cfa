-- Events of host threads in call tree order, and the resulting tree.

-- name: host_events
-- Events of all host threads, by trace and thread, in the order in which the call tree opens them.
--
-- Events of a thread are ordered by start; among equal starts, longer events come first, then event order decides.
-- Memory events are leaves: they come last at their instant, so no event that starts at the same instant is nested in
-- them. Values of kind: 0 operator, 1 runtime call, 2 annotation, 3 profiler step, 4 module call, 5 Python frame,
-- 6 memory event. Name hashes identify equal stacks; for this purpose, all profiler steps share one name.
CREATE OR REPLACE VIEW host_events AS
WITH
    spans AS (
        SELECT
            c.pid, c.tid, c.ts, c.dur, c.event_id, 0::TINYINT AS kind, c.name,
            -- Same rule as in torch's profiler.
            (
                coalesce(c.fwd_thread_id, 0) > 0 AND NOT starts_with(c.name, 'autograd::engine::')
                OR c.name = 'torch::autograd::AccumulateGrad'
            )::TINYINT AS is_backward
        FROM staged_cpu_ops AS c
        UNION ALL
        SELECT r.pid, r.tid, r.ts, r.dur, r.event_id, 1::TINYINT, r.name, 0::TINYINT FROM staged_runtime_calls AS r
        UNION ALL
        SELECT
            a.pid, a.tid, a.ts, a.dur, a.event_id, CASE WHEN starts_with(a.name, 'ProfilerStep') THEN 3 ELSE 2 END::TINYINT,
            a.name, 0::TINYINT
        FROM staged_annotations AS a
        WHERE a.cat = 'user_annotation'
        UNION ALL
        SELECT
            p.pid, p.tid, p.ts, p.dur, p.event_id, CASE WHEN starts_with(p.name, 'nn.Module: ') THEN 4 ELSE 5 END::TINYINT,
            p.name, 0::TINYINT
        FROM staged_python_calls AS p
        UNION ALL
        SELECT m.pid, m.tid, m.ts, -1 AS dur, m.event_id, 6::TINYINT, NULL, 0::TINYINT FROM staged_memory_events AS m
    ),
    threads AS (
        SELECT d.part, d.pid, d.tid, row_number() OVER (ORDER BY d.part, d.pid, d.tid)::INTEGER AS thread
        FROM (SELECT DISTINCT part_of(s.event_id) AS part, s.pid, s.tid FROM spans AS s) AS d
    )
SELECT
    t.thread, s.ts, s.ts + greatest(s.dur, 0) AS end_ts, s.event_id, s.kind, s.is_backward,
    hash(CASE WHEN starts_with(s.name, 'ProfilerStep') THEN 'ProfilerStep*' ELSE s.name END) AS name_hash
FROM spans AS s
JOIN threads AS t ON t.part = part_of(s.event_id) AND t.pid IS NOT DISTINCT FROM s.pid AND t.tid IS NOT DISTINCT FROM s.tid
ORDER BY t.thread, s.ts, s.dur DESC, s.event_id;

-- name: call_tree
-- Call tree and profiler step of each host event, in event order. Rows of one kind have the order of their staged
-- table, which is too wide to be sorted or joined.
--
-- Each stored table selects its rows by kind (see host_events).
CREATE OR REPLACE TABLE call_tree AS
FROM call_tree_rows AS r
ORDER BY r.event_id;
