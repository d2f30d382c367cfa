-- Advice: a call that waits for the GPU leaves it without work for 2 % of the steps or more.
--
-- What follows such a call until the GPU has work again counts as its effect.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib.advice_synchronisation(
    -- Name of a relation with the columns of lib.step_sums.
    spans,
    -- Name of a relation with the columns of lib.caused_idle.
    idle
) AS TABLE
-- Columns: those of advice_data_loading.
WITH
    _chosen AS (
        SELECT i.*
        FROM query_table(idle) AS i
        WHERE i.cause = 'synchronisation' OR i.role = 'effect'
    )
SELECT
    f.run, f.rank, 'synchronisation' AS rule, f.subject, f.event_count, f.own_ns, f.own_ns AS ceiling_ns, 'medium' AS confidence, f.event_id,
    lib.message('advice.synchronisation', {'share_pct': f.own_pct, 'gap_count': f.event_count}) AS message,
    f.evidence_sql || ' WHERE cause = ''synchronisation'' OR role = ''effect''' AS evidence_sql,
    'synchronisations' AS next_analysis
FROM lib.summed_idle('_chosen', spans) AS f
WHERE f.own_ns >= 0.02 * f.step_ns
