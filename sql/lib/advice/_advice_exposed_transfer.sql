-- Advice: transfers of collectives that no computation hides take 5 % of the steps or more.
--
-- The share is that of TraceLens; waits for late ranks are not in it.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib._advice_exposed_transfer(
    -- Name of a relation with the columns of lib.step_sums.
    spans,
    -- Name of a relation with the columns of lib._advice_kernels.
    kernels
) AS TABLE
-- Columns: those of _advice_data_loading.
WITH
    _chosen AS (
        SELECT k.*
        FROM query_table(kernels) AS k
        WHERE k.class = 'communication'
    )
SELECT
    f.run, f.rank, 'exposed_transfer' AS rule, f.kernel AS subject, f.event_count, f.affected_ns, f.transfer_ns AS ceiling_ns, 'high' AS confidence, f.event_id,
    lib.message('advice.exposed_transfer', {'exposed_pct': 100 * (f.transfer_ns / nullif(f.step_ns, 0))}) AS message,
    f.evidence_sql,
    'process_group_costs' AS next_analysis
FROM lib.summed_kernels('_chosen', spans) AS f
WHERE f.transfer_ns >= 0.05 * f.step_ns
