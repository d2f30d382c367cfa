-- Advice: a job on GPUs communicates through gloo instead of NCCL.
--
-- The condition is that of the TensorBoard profiler plugin: DistributedDataParallel without nccl on a device that
-- supports it.
CREATE OR REPLACE MACRO lib._advice_gloo_for_gpus(
    runs,
    ranks
) AS TABLE
-- Columns: those of _advice_by_rule.
WITH
    _computing AS (
        SELECT g.run, g.rank, count(*) AS kernel_count
        FROM gpu_ops AS g
        WHERE g.class = 'computation' AND lib.is_requested(runs, g.run) AND lib.is_requested(ranks, g.rank)
        GROUP BY g.run, g.rank
    )
SELECT
    k.run, k.rank, 'gloo_for_gpus' AS rule, k.backend AS subject, c.kernel_count AS event_count, NULL::BIGINT AS affected_ns, NULL::BIGINT AS saved_ns, 'high' AS confidence, NULL::BIGINT AS event_id,
    lib.message('advice.gloo_for_gpus', NULL) AS message,
    format('SELECT rank, backend, world_size FROM ranks WHERE run = {} ORDER BY rank', lib.sql_literal(k.run)) AS evidence_sql,
    'jobs' AS next_analysis
FROM ranks AS k
JOIN _computing AS c ON c.run = k.run AND c.rank = k.rank
WHERE k.backend = 'gloo' AND k.world_size > 1
