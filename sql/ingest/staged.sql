-- Staged tables: definition, row order and row counts.

-- name: table_definition
-- Statement that recreates a staged table of the current rank, without rows. An engine may contain several ranks at
-- once.
SELECT t.sql
FROM duckdb_tables() AS t
WHERE t.table_name = $table_name AND t.database_name = current_database() AND t.schema_name = current_schema();

-- name: out_of_order
-- Staged tables whose rows are not in event order: events of reparsed chunks come at the end of their batch, and
-- Ascend's device activity comes at the end of the table.
--
-- Only tables that are written in stored order are checked. The engine numbers the rows of a table in insertion
-- order.
WITH
    neighbors AS (
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
FROM neighbors AS n
WHERE n.is_late
GROUP BY n.name;

-- name: row_counts
-- Upper bound of the row count of each table that is derived from a trace or accompanies its events. For an empty
-- table, no statement is run, which saves five to eight milliseconds.
SELECT 'steps', count(*)
FROM profiler_steps
UNION ALL
SELECT 'stacks', count(*)
FROM call_tree
UNION ALL
SELECT 'quarantine', (SELECT count(*) FROM quarantined) + (SELECT count(*) FROM odd_arguments)
UNION ALL
SELECT 'devices', count_if((m.metadata -> '$.deviceProperties') IS NOT NULL)
FROM job AS m
UNION ALL
SELECT 'process_groups', count_if((m.metadata -> '$.distributedInfo.pg_config') IS NOT NULL)
FROM job AS m;
