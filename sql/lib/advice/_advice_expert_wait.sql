-- Advice: a rank waits in expert-parallel exchanges for at least 5 % of step time, without computing.
--
-- The wait is how much longer exchanges take than on the fastest rank, because another rank has more tokens or
-- arrives late. A single rank cannot be compared.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib._advice_expert_wait(
    -- Name of a relation with the columns of lib.step_sums.
    spans,
    -- Name of a relation with the columns of lib._advice_experts.
    experts
) AS TABLE
-- Columns: those of _advice_data_loading.
WITH
    _found AS (
        SELECT e.*, e.wait_ns AS lost_ns, s.recorded_ns
        FROM query_table(experts) AS e
        JOIN query_table(spans) AS s ON s.run = e.run AND s.rank = e.rank
    )
SELECT
    f.run, f.rank, 'expert_wait' AS rule, f.subject, f.event_count, f.affected_ns, f.lost_ns AS ceiling_ns, 'medium' AS confidence, f.event_id,
    lib.message('advice.expert_wait', {'share_pct': 100 * (f.lost_ns / f.recorded_ns)}) AS message,
    format('FROM expert_parallel_v1(runs := [{}], ranks := [{}])', lib.sql_literal(f.run), f.rank) AS evidence_sql,
    'expert_parallel' AS next_analysis
FROM _found AS f
WHERE f.lost_ns >= 0.05 * f.recorded_ns
