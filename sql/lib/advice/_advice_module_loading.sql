-- Advice: the GPU waits while the driver loads code, for at least 1 % of step time.
--
-- The driver loads a kernel when it is used for the first time.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib._advice_module_loading(
    -- Name of a relation with the columns of lib.step_sums.
    spans,
    -- Name of a relation with the columns of lib.caused_idle.
    idle
) AS TABLE
-- Columns: those of _advice_data_loading.
WITH
    _chosen AS (
        SELECT i.* REPLACE (coalesce(i.call, i.name) AS name)
        FROM query_table(idle) AS i
        WHERE i.cause = 'runtime call' AND regexp_matches(coalesce(i.call, i.name, ''), '(Module|Library)(Load|Get)|FuncGetAttributes|FuncSetAttribute')
    )
SELECT
    f.run, f.rank, 'module_loading' AS rule, f.subject, f.event_count, f.affected_ns, f.affected_ns AS ceiling_ns, 'high' AS confidence, f.event_id,
    lib.message('advice.module_loading', {'share_pct': f.affected_pct, 'gap_count': f.event_count}) AS message,
    f.evidence_sql || ' WHERE cause = ''runtime call''' AS evidence_sql,
    'idle_causes' AS next_analysis
FROM lib.summed_idle('_chosen', spans) AS f
WHERE f.affected_ns >= 0.01 * f.recorded_ns
