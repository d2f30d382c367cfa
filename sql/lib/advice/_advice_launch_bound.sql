-- Advice: the GPU is idle for at least 10 % of step time because the host launches kernels more slowly than the GPU
-- runs them.
--
-- Gaps are grouped by the operator or function on the host; a group counts if its gaps are at most as long as
-- 200 launches on average, about 1 ms (lib.launch_lengths). Longer gaps are not caused by launching and belong to host_work. If no host event is open during a gap,
-- unrecorded Python code is running. If the host causes idle time of at least 10 % of step time in total, the
-- threshold is 3 %, so that several causes below 10 % each are still reported.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib._advice_launch_bound(
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
        WHERE (i.relation = 'cause' AND i.cause IN ('host operator', 'module', 'python', 'annotation') OR i.cause = 'no event') AND i.idle_ns <= 200 * l.launch_ns::HUGEINT * i.gap_count
    )
SELECT
    f.run, f.rank, 'launch_bound' AS rule, f.subject, f.event_count, f.affected_ns, f.affected_ns AS ceiling_ns, 'high' AS confidence, f.event_id,
    CASE
        WHEN regexp_matches(coalesce(f.subject, ''), '^(Torch-Compiled Region|## Call CompiledFxGraph|CompiledFunction|triton_)')
            THEN lib.message('advice.launch_bound_compiled', {'share_pct': f.affected_pct, 'gap_count': f.event_count})
        ELSE lib.message('advice.launch_bound', {'share_pct': f.affected_pct, 'gap_count': f.event_count})
    END AS message,
    f.evidence_sql || ' WHERE relation = ''cause''' AS evidence_sql,
    'idle_causes' AS next_analysis
FROM lib.summed_idle('_chosen', spans) AS f
JOIN lib.advice_late_host(spans, idle) AS h ON h.run = f.run AND h.rank = f.rank
WHERE f.affected_ns >= 0.1 * f.recorded_ns OR h.is_late AND f.affected_ns >= h.least_ns
