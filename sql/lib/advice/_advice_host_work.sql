-- Advice: host work between launches leaves the GPU idle for at least 5 % of step time.
--
-- Gaps are grouped by the operator or function on the host; a group counts if its gaps are longer than 200
-- launches on average, about 1 ms (lib.launch_lengths). If the host causes idle time of at least 10 % of step time in total, the threshold is 3 %, so that several
-- causes below 5 % each are still reported.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib._advice_host_work(
    -- Name of a relation with the columns of lib.step_sums.
    spans,
    -- Name of a relation with the columns of lib.caused_idle.
    idle,
    -- Name of a relation with the columns of lib.launch_lengths.
    launch_lengths
) AS TABLE
-- Columns: those of _advice_data_loading.
WITH
    _chosen AS (
        SELECT i.*
        FROM query_table(idle) AS i
        JOIN query_table(launch_lengths) AS l ON l.run = i.run AND l.rank = i.rank
        WHERE (i.relation = 'cause' AND i.cause IN ('host operator', 'module', 'python', 'annotation') OR i.cause = 'no event') AND i.idle_ns > 200 * l.launch_ns::HUGEINT * i.gap_count
    )
SELECT
    f.run, f.rank, 'host_work' AS rule, f.subject, f.event_count, f.affected_ns, f.affected_ns AS ceiling_ns, 'medium' AS confidence, f.event_id,
    lib.message('advice.host_work', {'share_pct': f.affected_pct, 'gap_count': f.event_count}) AS message,
    f.evidence_sql || ' WHERE relation = ''cause''' AS evidence_sql,
    'idle_causes' AS next_analysis
FROM lib.summed_idle('_chosen', spans) AS f
JOIN lib.advice_late_host(spans, idle) AS h ON h.run = f.run AND h.rank = f.rank
WHERE f.affected_ns >= 0.05 * f.recorded_ns OR h.is_late AND f.affected_ns >= h.least_ns
