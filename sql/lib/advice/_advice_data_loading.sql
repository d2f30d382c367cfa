-- Advice: GPUs wait for data for at least 5 % of step time.
--
-- The threshold is that of the TensorBoard profiler plugin, but only device idle time counts here. Without a device,
-- the time in the data loader counts.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib._advice_data_loading(
    -- Name of a relation with the columns of lib.step_sums.
    spans,
    -- Name of a relation with the columns of lib.caused_idle.
    idle,
    -- Name of a relation with the columns of lib._advice_host.
    host
) AS TABLE
-- Columns:
--   run            VARCHAR         Run name.
--   rank           INTEGER         Rank of the process.
--   rule           VARCHAR         Name of the rule.
--   subject        VARCHAR         Operator, kernel, call or annotation with the largest contribution; NULL if it has no name.
--   event_count    BIGINT [count]  Number of events or gaps that triggered the rule.
--   affected_ns    BIGINT [ns]     Total time of these events or gaps; NULL if they have no duration.
--   ceiling_ns     BIGINT [ns]     Upper bound on the saving, at most the part of step time that the rule concerns; NULL if unknown.
--   confidence     VARCHAR         high: recorded directly; medium: inferred from kernel names or shares; low: a hint.
--   event_id       BIGINT          event_id of an example; NULL if there is none.
--   message        STRUCT          Finding and recommendation, as returned by lib.message.
--   evidence_sql   VARCHAR         Query that shows the evidence.
--   next_analysis  VARCHAR         Analysis that shows more.
WITH
    _chosen AS (
        SELECT i.*
        FROM query_table(idle) AS i
        WHERE i.cause = 'data loading'
    ),
    _found AS (
        SELECT
            f.run, f.rank, f.subject, f.event_count, f.affected_ns, f.affected_pct, f.event_id, f.recorded_ns, true AS has_device,
            f.evidence_sql || ' WHERE cause = ''data loading''' AS evidence_sql, 'idle_causes' AS next_analysis
        FROM lib.summed_idle('_chosen', spans) AS f
        UNION ALL
        SELECT
            h.run, h.rank, h.subject, h.event_count, h.affected_ns, h.affected_pct, h.event_id, h.recorded_ns, false,
            h.evidence_sql, 'ops_by_name'
        FROM query_table(host) AS h
        WHERE h.kind = 'data loading'
    )
SELECT
    f.run, f.rank, 'data_loading' AS rule, f.subject, f.event_count, f.affected_ns, f.affected_ns AS ceiling_ns, 'high' AS confidence, f.event_id,
    CASE
        WHEN contains(f.subject, 'SingleProcess') AND f.has_device THEN lib.message('advice.data_loading_without_workers', {'share_pct': f.affected_pct})
        WHEN contains(f.subject, 'SingleProcess') THEN lib.message('advice.data_loading_without_workers_or_gpu', {'share_pct': f.affected_pct})
        WHEN f.has_device THEN lib.message('advice.data_loading', {'share_pct': f.affected_pct})
        ELSE lib.message('advice.data_loading_without_gpu', {'share_pct': f.affected_pct})
    END AS message,
    f.evidence_sql, f.next_analysis
FROM _found AS f
WHERE f.affected_ns >= 0.05 * f.recorded_ns
