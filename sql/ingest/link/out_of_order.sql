-- The staged tables whose rows do not stand in event order: what a chunk held that had to be parsed comes
-- behind the rest of its batch, and Ascend's device activity behind all.
--
-- Of those that are written as they stand. The engine numbers the rows of a table as they were added.
WITH
    neighbours AS (
        SELECT 'cpu_ops' AS name, x.event_id < lag(x.event_id) OVER () AS is_late FROM staged_cpu_ops AS x
        UNION ALL
        SELECT 'runtime_calls' AS name, x.event_id < lag(x.event_id) OVER () AS is_late FROM staged_runtime_calls AS x
        UNION ALL
        SELECT 'gpu_ops' AS name, x.event_id < lag(x.event_id) OVER () AS is_late FROM staged_gpu_ops AS x
        UNION ALL
        SELECT 'python_calls' AS name, x.event_id < lag(x.event_id) OVER () AS is_late FROM staged_python_calls AS x
        UNION ALL
        SELECT 'memory_events' AS name, x.event_id < lag(x.event_id) OVER () AS is_late FROM staged_memory_events AS x
        UNION ALL
        SELECT 'flows' AS name, x.event_id < lag(x.event_id) OVER () AS is_late FROM staged_flows AS x
        UNION ALL
        SELECT 'other_events' AS name, x.event_id < lag(x.event_id) OVER () AS is_late FROM staged_other_events AS x
    )
SELECT n.name
FROM neighbours AS n
WHERE n.is_late
GROUP BY n.name
