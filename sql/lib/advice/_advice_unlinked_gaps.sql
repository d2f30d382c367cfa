-- Advice: the GPU is idle for at least 10 % of step time, and the trace has no launch that explains it.
--
-- Traces recorded by other frameworks, and captures of the device alone, contain no launches.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib._advice_unlinked_gaps(
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
        WHERE i.cause = 'unknown'
    )
SELECT
    f.run, f.rank, 'unlinked_gaps' AS rule, f.subject, f.event_count, f.affected_ns, f.affected_ns AS ceiling_ns, 'medium' AS confidence, f.event_id,
    lib.message('advice.unlinked_gaps', {'share_pct': f.affected_pct, 'gap_count': f.event_count}) AS message,
    f.evidence_sql || ' WHERE cause = ''unknown''' AS evidence_sql,
    'idle_causes' AS next_analysis
FROM lib.summed_idle('_chosen', spans) AS f
WHERE f.affected_ns >= 0.1 * f.recorded_ns
