-- Advice: DataParallel copies the model in each step; DistributedDataParallel does not.
--
-- The condition is that of the TensorBoard profiler plugin: DataParallel.forward is called, and more than one device
-- is used.
CREATE OR REPLACE MACRO lib._advice_data_parallel(
    runs,
    ranks
) AS TABLE
-- Columns: those of _advice_by_rule.
WITH
    _called AS (
        SELECT a.run, a.rank, a.event_id, a.ts FROM annotations AS a WHERE a.name = 'DataParallel.forward'
        UNION ALL
        SELECT c.run, c.rank, c.event_id, c.ts FROM cpu_ops AS c WHERE c.name = 'DataParallel.forward'
        UNION ALL
        SELECT p.run, p.rank, p.event_id, p.ts FROM python_calls AS p WHERE regexp_matches(p.name, 'parallel/data_parallel\.py\(\d+\): forward$')
    ),
    _found AS (
        SELECT c.run, c.rank, count(*) AS event_count, arg_min(c.event_id, (c.ts, c.event_id)) AS event_id
        FROM _called AS c
        WHERE lib.is_requested(runs, c.run) AND lib.is_requested(ranks, c.rank)
        GROUP BY c.run, c.rank
    ),
    _devices AS (
        SELECT g.run, g.rank, count(DISTINCT g.device) AS device_count
        FROM gpu_ops AS g
        WHERE g.class = 'computation' AND lib.is_requested(runs, g.run) AND lib.is_requested(ranks, g.rank)
        GROUP BY g.run, g.rank
    )
SELECT
    f.run, f.rank, 'data_parallel' AS rule, 'DataParallel.forward' AS subject, f.event_count, NULL::BIGINT AS affected_ns, NULL::BIGINT AS saved_ns, 'high' AS confidence, f.event_id,
    lib.message('advice.data_parallel', {'device_count': d.device_count}) AS message,
    format('FROM events WHERE run = {} AND rank = {} AND event_id = {}', lib.sql_literal(f.run), f.rank, f.event_id) AS evidence_sql,
    'temporal_breakdown' AS next_analysis
FROM _found AS f
JOIN _devices AS d ON d.run = f.run AND d.rank = f.rank AND d.device_count > 1
