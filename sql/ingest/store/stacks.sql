-- Distinct call stacks: chains of names from the outermost event down to the event itself.
WITH
    firsts AS (
        SELECT t.event_id, t.kind, t.parent_id, t.depth
        FROM call_tree AS t
        WHERE t.stack_id = t.event_id AND t.kind <> 6
    ),
    named AS (
        SELECT c.event_id, c.name FROM staged_cpu_ops AS c
        UNION ALL
        SELECT r.event_id, r.name FROM staged_runtime_calls AS r
        UNION ALL
        SELECT a.event_id, a.name FROM staged_annotations AS a
        UNION ALL
        SELECT p.event_id, p.name FROM staged_python_calls AS p
    )
SELECT
    j.run,
    j.rank,
    own_id(f.event_id) AS stack_id,
    own_id(u.stack_id) AS parent_stack_id,
    f.depth,
    ['operator', 'runtime', 'annotation', 'step', 'module', 'frame'][f.kind + 1] AS kind,
    CASE WHEN starts_with(n.name, 'ProfilerStep') THEN 'ProfilerStep*' ELSE n.name END AS name
FROM firsts AS f
JOIN rank_frame AS j ON j.part = part_of(f.event_id)
JOIN named AS n ON n.event_id = f.event_id
LEFT JOIN call_tree AS u ON u.event_id = f.parent_id
ORDER BY f.event_id
