-- Advice: a straggler delays the other ranks, in all steps or in some.
--
-- The ceiling is the larger of two times, the straggler's own work beyond that of its peers and the additional wait of these
-- peers, but at most the time by which it arrives after the first rank in its collectives.
CREATE OR REPLACE MACRO lib._advice_late_rank(
    -- Name of a relation with the columns of lib.step_sums.
    spans,
    -- Name of a relation with the columns of lib.late_ranks.
    verdicts,
    ranks
) AS TABLE
-- Columns: those of _advice_by_rule.
SELECT
    j.run, j.rank, 'late_rank' AS rule, 'rank ' || j.rank AS subject, j.late_step_count AS event_count, j.late_ns AS affected_ns,
    -- The loss is measured as a share of the compared time and scaled to the recorded step time.
    round(least(1, j.most_cost_ns / j.window_ns) * s.recorded_ns)::BIGINT AS ceiling_ns,
    CASE j.verdict WHEN 'straggler' THEN 'high' ELSE 'medium' END AS confidence, NULL::BIGINT AS event_id,
    lib.message('advice.late_rank', {'rank': j.rank, 'is_certain': j.is_late, 'late_step_count': j.late_step_count, 'step_count': j.step_count}) AS message,
    format('FROM stragglers_v1(runs := [{}], ranks := [{}])', lib.sql_literal(j.run), j.rank) AS evidence_sql,
    'stragglers' AS next_analysis
FROM query_table(verdicts) AS j
-- A rank without steps in scope may still delay the others.
LEFT JOIN query_table(spans) AS s ON s.run = j.run AND s.rank = j.rank
WHERE j.verdict IN ('straggler', 'intermittent') AND lib.is_requested(ranks, j.rank)
