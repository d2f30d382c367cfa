-- Node of an execution trace for each host operator and annotation of the requested ranks.
--
-- A node matches an event with the same record function id. In the profile, that id is "Record function id" if
-- present, otherwise "External id", which was the same number in older versions. A node with the same id but a
-- different name belongs to a different capture.
WITH
    nodes AS (
        SELECT
            unnest($record_function_ids::BIGINT[]) AS record_function_id,
            unnest($names::VARCHAR[]) AS name,
            unnest($node_ids::BIGINT[]) AS node_id
    ),
    host AS (
        SELECT c.run, c.rank, c.event_id, c.name, coalesce(nullif(c.record_function_id, 0), c.external_id) AS record_function_id
        FROM cpu_ops AS c
        UNION ALL
        SELECT a.run, a.rank, a.event_id, a.name, coalesce(nullif(a.record_function_id, 0), a.external_id)
        FROM annotations AS a
        WHERE NOT a.on_gpu
    )
SELECT h.event_id, min(n.node_id) AS node_id
FROM host AS h
JOIN nodes AS n ON n.record_function_id = h.record_function_id AND n.name = h.name
WHERE list_contains($runs, h.run) AND list_contains($ranks, h.rank) AND h.record_function_id > 0
GROUP BY h.event_id
ORDER BY h.event_id
