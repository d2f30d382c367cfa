-- Advice: work of the host between launches leaves the GPU without work for 5 % of the steps or more.
--
-- Counted are gaps of more than 1 ms on the mean, by the operator or function that the host is in.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib.advice_host_work(
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
        WHERE (i.role = 'cause' AND i.cause IN ('host operator', 'module', 'python', 'annotation') OR i.cause = 'no event') AND i.idle_ns > 1000000 * i.gap_count
        GROUP BY i.run, i.rank
    )
SELECT
    f.run, f.rank, 'host_work' AS rule, 'Take work of the host out of the step' AS title, f.subject, f.event_count, f.own_ns, f.own_ns AS ceiling_ns, 'medium' AS confidence, f.event_id,
    printf('The host works on something else for %.1f %% of the steps, in %d gaps.', 100 * (f.own_ns / s.step_ns), f.event_count) AS finding,
    'Do this before or after the step, on another thread, or on the GPU. An operator that stands here for a few gaps is often used for the first time: warm up. with_stack=True names the function.' AS remedy,
    format('FROM idle_causes_v1(runs := [''{}''], ranks := [{}]) WHERE role = ''cause''', replace(f.run, '''', ''''''), f.rank) AS evidence_sql,
    'idle_causes' AS next_analysis
FROM _found AS f
JOIN query_table(spans) AS s ON s.run = f.run AND s.rank = f.rank
WHERE f.own_ns >= 0.05 * s.step_ns
