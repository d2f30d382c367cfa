-- Advice: calls that wait for the GPU leave the GPU without work for at least 2 % of step time.
--
-- Idle time after such a call, until the GPU has work again, counts as an effect of the call.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib._advice_synchronization(
    -- Name of a relation with the columns of lib.step_sums.
    spans,
    -- Name of a relation with the columns of lib.caused_idle.
    idle
) AS TABLE
-- Columns: those of _advice_data_loading.
WITH
    _chosen AS (
        SELECT i.*
        FROM query_table(idle) AS i
        WHERE i.cause = 'synchronization' OR i.relation = 'effect'
    )
SELECT
    f.run, f.rank, 'synchronization' AS rule, f.subject, f.event_count, f.affected_ns, f.affected_ns AS ceiling_ns, 'medium' AS confidence, f.event_id,
    lib.message('advice.synchronization', {'share_pct': f.affected_pct, 'gap_count': f.event_count}) AS message,
    f.evidence_sql || ' WHERE cause = ''synchronization'' OR relation = ''effect''' AS evidence_sql,
    'synchronizations' AS next_analysis
FROM lib.summed_idle('_chosen', spans) AS f
WHERE f.affected_ns >= 0.02 * f.recorded_ns
