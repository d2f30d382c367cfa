-- Advice: a rank is late by habit, and the others wait for it.
--
-- What can be saved is what it waits less than the others, and no more than the longest wait of one of them.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib._advice_late_rank(
    -- Name of a relation with the columns of lib.step_sums.
    spans,
    -- Runs to include; NULL means every run.
    runs,
    -- Ranks to include; NULL means every rank.
    ranks
) AS TABLE
-- Columns: those of _advice_data_loading.
WITH
    _longest AS (
        SELECT s.run, max(s.wait_ns) AS wait_ns
        FROM query_table(spans) AS s
        GROUP BY s.run
    )
SELECT
    j.run, j.rank, 'late_rank' AS rule, 'rank ' || j.rank AS subject, j.last_arrival_count AS event_count, j.excess_ns AS affected_ns, least(j.excess_ns, l.wait_ns) AS ceiling_ns,
    'high' AS confidence, NULL::BIGINT AS event_id,
    lib.message('advice.late_rank', {'rank': j.rank, 'last_arrival_count': j.last_arrival_count, 'collective_count': j.collective_count}) AS message,
    format('FROM stragglers_v1(runs := [{}], ranks := [{}])', lib.sql_literal(j.run), j.rank) AS evidence_sql,
    'stragglers' AS next_analysis
FROM lib.late_ranks(runs, 1.0) AS j
JOIN _longest AS l ON l.run = j.run
WHERE j.is_late AND lib.is_requested(ranks, j.rank)
