-- Advice: the GPU waits while the driver loads code, for 1 % of the steps or more.
--
-- It does so when a kernel is used for the first time.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib.advice_module_loading(
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
            arg_max(coalesce(i.call, i.name), (i.idle_ns, i.call)) AS subject,
            sum(i.gap_count)::BIGINT AS event_count,
            sum(i.idle_ns)::BIGINT AS own_ns,
            arg_max(i.event_id, (i.longest_ns, -i.event_id)) AS event_id
        FROM query_table(idle) AS i
        WHERE i.cause = 'runtime call' AND regexp_matches(coalesce(i.call, i.name, ''), '(Module|Library)(Load|Get)|FuncGetAttributes|FuncSetAttribute')
        GROUP BY i.run, i.rank
    )
SELECT
    f.run, f.rank, 'module_loading' AS rule, 'Warm up before what counts' AS title, f.subject, f.event_count, f.own_ns, f.own_ns AS ceiling_ns, 'high' AS confidence, f.event_id,
    printf('The driver loads code for %.1f %% of the steps, in %d gaps.', 100 * (f.own_ns / s.step_ns), f.event_count) AS finding,
    'Warm up before what counts (schedule(wait=1, warmup=3, active=…)), or CUDA_MODULE_LOADING=EAGER.' AS remedy,
    format('FROM idle_causes_v1(runs := [''{}''], ranks := [{}]) WHERE cause = ''runtime call''', replace(f.run, '''', ''''''), f.rank) AS evidence_sql,
    'idle_causes' AS next_analysis
FROM _found AS f
JOIN query_table(spans) AS s ON s.run = f.run AND s.rank = f.rank
WHERE f.own_ns >= 0.01 * s.step_ns
