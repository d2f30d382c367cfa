-- Advice: the device idles for at least 5 % of step time between the iterations of a serving engine.
--
-- During these gaps, the host schedules, samples and detokenizes; an engine that schedules ahead overlaps this with
-- device work.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib._advice_scheduling_gap(
    -- Name of a relation with the columns of lib.step_sums.
    spans,
    -- Name of a relation with the columns of lib._advice_serving.
    served
) AS TABLE
-- Columns: those of _advice_data_loading.
SELECT
    f.run, f.rank, 'scheduling_gap' AS rule, NULL::VARCHAR AS subject, f.event_count, f.affected_ns, f.lost_ns AS ceiling_ns, 'high' AS confidence, f.event_id,
    lib.message('advice.scheduling_gap', {'iteration_count': f.event_count, 'share_pct': 100 * (f.lost_ns / s.recorded_ns)}) AS message,
    format('FROM iterations_v1(runs := [{}], ranks := [{}])', lib.sql_literal(f.run), f.rank) AS evidence_sql,
    'iterations' AS next_analysis
FROM query_table(served) AS f
JOIN query_table(spans) AS s ON s.run = f.run AND s.rank = f.rank
WHERE f.kind = 'scheduling_gap' AND f.lost_ns >= 0.05 * s.recorded_ns
