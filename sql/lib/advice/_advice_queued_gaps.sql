-- Advice: the GPU is idle for at least 10 % of step time although the next operation has been launched.
--
-- The cause is launch latency, or a wait for another stream or an event; it is not host work.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib._advice_queued_gaps(
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
        WHERE i.cause = 'device queue'
    )
SELECT
    f.run, f.rank, 'queued_gaps' AS rule, f.subject, f.event_count, f.affected_ns, f.affected_ns AS ceiling_ns, 'medium' AS confidence, f.event_id,
    lib.message('advice.queued_gaps', {'share_pct': f.affected_pct, 'gap_count': f.event_count}) AS message,
    f.evidence_sql || ' WHERE cause = ''device queue''' AS evidence_sql,
    'idle_causes' AS next_analysis
FROM lib.summed_idle('_chosen', spans) AS f
WHERE f.affected_ns >= 0.1 * f.recorded_ns
