-- Advice: the host launches slower than the GPU works, for 10 % of the steps or more.
--
-- Counted are gaps of 1 ms at most on the mean, by the operator or function that the host is in: longer ones have another reason than
-- launching, and host_work tells of them. Where no event is open, Python runs that is not recorded.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib.advice_launch_bound(
    -- Name of a relation with the columns of lib.advice_spans.
    spans,
    -- Name of a relation with the columns of lib.caused_idle.
    idle
) AS TABLE
-- Columns: those of advice_data_loading.
WITH
    _found AS (
        SELECT
            i.run, i.rank,
            arg_max(coalesce(i.name, i.call), (i.idle_ns, i.name)) AS subject,
            sum(i.gap_count)::BIGINT AS event_count,
            sum(i.idle_ns)::BIGINT AS own_ns,
            arg_max(i.event_id, (i.longest_ns, -i.event_id)) AS event_id
        FROM query_table(idle) AS i
        WHERE (i.role = 'cause' AND i.cause IN ('host operator', 'module', 'python', 'annotation') OR i.cause = 'no event') AND i.idle_ns <= 1000000 * i.gap_count
        GROUP BY i.run, i.rank
    )
SELECT
    f.run, f.rank, 'launch_bound' AS rule, 'Launch fewer, larger pieces of work' AS title, f.subject, f.event_count, f.own_ns, f.own_ns AS ceiling_ns, 'high' AS confidence, f.event_id,
    printf('The GPU waits for the next launch in %d short gaps, %.1f %% of the steps.', f.event_count, 100 * (f.own_ns / s.step_ns)) AS finding,
    CASE
        WHEN regexp_matches(coalesce(f.subject, ''), '^(Torch-Compiled Region|## Call CompiledFxGraph|CompiledFunction|triton_)') THEN 'CUDA graphs for the compiled code: torch.compile(mode="reduce-overhead"); larger batches; static shapes, so that nothing is compiled again.'
        ELSE 'CUDA graphs (torch.compile(mode="reduce-overhead") or torch.cuda.graph), larger batches, fused operators.'
    END AS remedy,
    format('FROM idle_causes_v1(runs := [''{}''], ranks := [{}]) WHERE role = ''cause''', replace(f.run, '''', ''''''), f.rank) AS evidence_sql,
    'idle_causes' AS next_analysis
FROM _found AS f
JOIN query_table(spans) AS s ON s.run = f.run AND s.rank = f.rank
WHERE f.own_ns >= 0.1 * s.step_ns
