-- Advice: a pipeline stage has more work than the other stages, which wait for it.
--
-- The saving is the larger of two times: the stage's work beyond the median of the other stages, and the additional
-- wait of these stages.
CREATE OR REPLACE MACRO lib._advice_slow_stage(
    -- Name of a relation with the columns of lib.step_sums.
    spans,
    -- Name of a relation with the columns of lib.judged_blocks.
    judged_items,
    -- Name of a relation with the columns of lib.pipeline_ranks.
    pipeline_ranks,
    ranks
) AS TABLE
-- Columns: those of _advice_by_rule.
SELECT
    r.run, r.rank, 'slow_stage' AS rule, 'stage ' || g.stage AS subject, g.step_count AS event_count, g.late_ns AS affected_ns,
    round(least(1, greatest(g.late_ns, g.cost_ns) / g.window_ns) * s.recorded_ns)::BIGINT AS saved_ns,
    'high' AS confidence, NULL::BIGINT AS event_id,
    lib.message('advice.slow_stage', {'stage': g.stage, 'stage_late_pct': 100 * (g.late_ns / g.window_ns)}) AS message,
    format('FROM pipeline_stages_v1(runs := [{}]) WHERE stage = {}', lib.sql_literal(g.run), g.stage) AS evidence_sql,
    'pipeline_stages' AS next_analysis
FROM lib.slow_stages(judged_items) AS g
JOIN query_table(pipeline_ranks) AS r ON r.run = g.run AND r.stage = g.stage
JOIN query_table(spans) AS s ON s.run = r.run AND s.rank = r.rank
WHERE g.is_slow AND lib.is_requested(ranks, r.rank)
