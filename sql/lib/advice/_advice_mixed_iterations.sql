-- Advice: prompts in the same iteration delay decodes by at least 10 % of step time.
--
-- The loss is how much longer such an iteration takes than the rank's median decode iteration. The prompts must be
-- processed anyway, so the possible saving is in time per output token, not in device time.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib._advice_mixed_iterations(
    -- Name of a relation with the columns of lib.step_sums.
    spans,
    -- Name of a relation with the columns of lib._advice_serving.
    served
) AS TABLE
-- Columns: those of _advice_data_loading.
SELECT
    f.run, f.rank, 'mixed_iterations' AS rule, NULL::VARCHAR AS subject, f.event_count, f.affected_ns, f.lost_ns AS ceiling_ns, 'medium' AS confidence, f.event_id,
    lib.message('advice.mixed_iterations', {'iteration_count': f.event_count, 'share_pct': 100 * (f.lost_ns / s.recorded_ns)}) AS message,
    format('FROM iterations_v1(runs := [{}], ranks := [{}])', lib.sql_literal(f.run), f.rank) AS evidence_sql,
    'iterations' AS next_analysis
FROM query_table(served) AS f
JOIN query_table(spans) AS s ON s.run = f.run AND s.rank = f.rank
WHERE f.kind = 'mixed_iterations' AND f.lost_ns >= 0.1 * s.recorded_ns
