-- Advice: an optimizer that updates one tensor at a time, with more than 100 kernels per step, takes at least 2 % of
-- step time. Without a device, advice_rules has the threshold.
--
-- The rule applies if more than half of the optimizer's kernels are plain elementwise kernels. The cost is the time
-- from the start of the first kernel to the end of the last. Kernels that update many tensors at once have other
-- names (multi_tensor_apply), and so do the kernels of optimizers that use matrix products.
CREATE OR REPLACE MACRO lib._advice_unfused_optimizer(
    -- Name of a relation with the columns of lib.step_sums.
    spans,
    runs,
    ranks,
    -- Profiler steps to include; NULL means every step.
    steps,
    include_last_profiler_step
) AS TABLE
-- Columns: those of _advice_by_rule.
WITH
    _calls AS (
        SELECT
            g.run, g.rank, g.annotation_id, count(*) AS kernel_count, count_if(contains(g.name, 'elementwise_kernel') AND NOT contains(g.name, 'multi_tensor')) AS plain_count,
            max(g.ts + g.dur) - min(g.ts) AS dur
        FROM lib.scoped_gpu_ops(runs, ranks, steps, include_last_profiler_step) AS g
        WHERE g.annotation_id IS NOT NULL
        GROUP BY g.run, g.rank, g.annotation_id
    ),
    _found AS (
        SELECT
            c.run, c.rank, arg_max(a.name, (c.dur, -a.ts, -a.event_id)) AS subject, count(*) AS call_count, sum(c.kernel_count)::BIGINT AS event_count,
            sum(c.dur)::BIGINT AS affected_ns, arg_max(a.event_id, (c.dur, -a.ts, -a.event_id)) AS event_id
        FROM _calls AS c
        JOIN annotations AS a ON a.run = c.run AND a.rank = c.rank AND a.event_id = c.annotation_id
        WHERE a.name LIKE 'Optimizer.step#%' AND c.kernel_count > 100 AND 2 * c.plain_count > c.kernel_count
        GROUP BY c.run, c.rank
    )
SELECT
    f.run, f.rank, 'unfused_optimizer' AS rule, f.subject, f.event_count, f.affected_ns, least(f.affected_ns, s.compute_ns + s.idle_ns) AS saved_ns, 'high' AS confidence, f.event_id,
    lib.message('advice.unfused_optimizer', {'kernel_count': f.event_count // f.call_count, 'share_pct': 100 * (f.affected_ns / nullif(s.recorded_ns, 0))}) AS message,
    format('FROM gpu_ops WHERE run = {} AND rank = {} AND annotation_id = {} ORDER BY ts', lib.sql_literal(f.run), f.rank, f.event_id) AS evidence_sql,
    'special_operators' AS next_analysis
FROM _found AS f
JOIN query_table(spans) AS s ON s.run = f.run AND s.rank = f.rank
WHERE f.affected_ns >= 0.02 * s.recorded_ns
