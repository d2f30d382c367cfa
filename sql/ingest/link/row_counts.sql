-- Rows by table of what is derived from a trace or stands beside its events, or more: a table of none
-- needs no statement, which would cost five to eight milliseconds.
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
FROM job AS m
