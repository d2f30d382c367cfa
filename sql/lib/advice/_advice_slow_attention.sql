-- Advice: attention over a KV cache loses at least 5 % of step time in calls that take more than twice their roofline
-- time.
--
-- The roofline assumes full contexts. With sliding windows, the true roofline time is shorter, so the actual loss is
-- larger than the reported saving. Calls shorter than 10 us are bound by latency and do not count.
CREATE OR REPLACE MACRO lib._advice_slow_attention(
    -- Name of a relation with the columns of lib.step_sums.
    spans,
    -- Name of a relation with the columns of lib.modeled_calls.
    calls,
    -- Name of a relation with the columns of lib.serving_iterations: iterations annotated by an engine.
    annotated,
    -- Name of a relation with the columns of lib.iteration_ops.
    device_ops,
    runs,
    ranks
) AS TABLE
-- Columns: those of _advice_by_rule.
WITH
    _far AS (
        SELECT c.run, c.rank, c.name, c.event_id, c.device_ns, round(c.max_roofline_ns)::BIGINT AS least_ns
        FROM lib.iteration_calls(annotated, device_ops, calls, runs, ranks, NULL, 0, NULL) AS c
        WHERE c.category = 'attention' AND 2 * c.max_roofline_ns < c.device_ns AND c.device_ns >= 10000
    ),
    _summed AS (
        SELECT
            c.run, c.rank, arg_max(c.name, (c.device_ns, c.name)) AS subject, count(*) AS event_count, sum(c.device_ns)::BIGINT AS affected_ns,
            sum(c.least_ns)::BIGINT AS least_ns, arg_max(c.event_id, (c.device_ns - c.least_ns, -c.event_id)) AS event_id
        FROM _far AS c
        GROUP BY c.run, c.rank
    )
SELECT
    f.run, f.rank, 'slow_attention' AS rule, f.subject, f.event_count, f.affected_ns, f.affected_ns - f.least_ns AS saved_ns, 'medium' AS confidence, f.event_id,
    lib.message('advice.slow_attention', {
        'call_count': f.event_count, 'share_pct': 100 * (f.affected_ns / s.recorded_ns), 'peak_pct': 100 * (f.least_ns / f.affected_ns)
    }) AS message,
    format('FROM serving_roofline_v1(runs := [{}], ranks := [{}])', lib.sql_literal(f.run), f.rank) AS evidence_sql,
    'serving_roofline' AS next_analysis
FROM _summed AS f
JOIN query_table(spans) AS s ON s.run = f.run AND s.rank = f.rank
WHERE f.affected_ns - f.least_ns >= 0.05 * s.recorded_ns
