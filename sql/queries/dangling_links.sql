-- Number of links to missing events in a store, by rank and kind of link.
--
-- An intact store has no such links: an id is stored only if its event exists.
WITH
    host_events AS (
        SELECT c.run, c.rank, c.event_id FROM stored.cpu_ops AS c
        UNION ALL
        SELECT r.run, r.rank, r.event_id FROM stored.runtime_calls AS r
        UNION ALL
        SELECT a.run, a.rank, a.event_id FROM stored.annotations AS a
        UNION ALL
        SELECT p.run, p.rank, p.event_id FROM stored.python_calls AS p
        UNION ALL
        SELECT s.run, s.rank, s.event_id FROM stored.steps AS s
    ),
    links AS (
        SELECT u.run, u.rank, 'cpu_ops' AS "table", u.link, u.target_id
        FROM (UNPIVOT stored.cpu_ops ON parent_id, parent_op_id, annotation_id, module_id, frame_id, fwd_op_id, bwd_op_id INTO NAME link VALUE target_id) AS u
        UNION ALL
        SELECT u.run, u.rank, 'runtime_calls', u.link, u.target_id
        FROM (UNPIVOT stored.runtime_calls ON parent_id, op_id, annotation_id, module_id, frame_id INTO NAME link VALUE target_id) AS u
        UNION ALL
        SELECT u.run, u.rank, 'annotations', u.link, u.target_id
        FROM (UNPIVOT stored.annotations ON parent_id, parent_annotation_id, op_id, module_id, frame_id INTO NAME link VALUE target_id) AS u
        UNION ALL
        SELECT u.run, u.rank, 'python_calls', u.link, u.target_id
        FROM (UNPIVOT stored.python_calls ON parent_id, parent_module_id, parent_frame_id, op_id, annotation_id INTO NAME link VALUE target_id) AS u
        UNION ALL
        SELECT u.run, u.rank, 'memory_events', u.link, u.target_id
        FROM (UNPIVOT stored.memory_events ON parent_id, op_id, annotation_id, module_id, frame_id INTO NAME link VALUE target_id) AS u
        UNION ALL
        SELECT u.run, u.rank, 'gpu_ops', u.link, u.target_id
        FROM (UNPIVOT stored.gpu_ops ON launch_id, op_id, annotation_id, module_id, bwd_op_id INTO NAME link VALUE target_id) AS u
    )
SELECT l.run, l.rank, l."table", l.link, count(*) AS dangling_count
FROM links AS l
ANTI JOIN host_events AS h ON h.run = l.run AND h.rank = l.rank AND h.event_id = l.target_id
GROUP BY ALL
ORDER BY ALL
