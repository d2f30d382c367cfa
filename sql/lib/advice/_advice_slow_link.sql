-- Advice: transfers between some ranks are slower than transfers of the same collective and size between other ranks.
--
-- The saving is how much longer the link's transfers take than the median of the other links.
CREATE OR REPLACE MACRO lib._advice_slow_link(
    -- Name of a relation with the columns of lib.step_sums.
    spans,
    -- Name of a relation with the columns of lib.rank_blocks.
    blocks,
    -- Name of a relation with the columns of lib.link_blocks.
    transfers,
    -- Name of a relation with the columns of lib.judged_blocks.
    judged_items,
    runs,
    ranks
) AS TABLE
-- Columns: those of _advice_by_rule.
WITH
    _ends AS (
        SELECT l.*, unnest(l.link_ranks) AS rank FROM lib.slow_links(runs, blocks, transfers, judged_items, lib.judging().least_pct) AS l
    )
SELECT
    e.run, e.rank, 'slow_link' AS rule, coalesce('rank ' || e.common_rank, 'host ' || e.common_host, e.channel) AS subject, NULL::BIGINT AS event_count, e.late_ns AS affected_ns,
    round(least(1, e.late_ns / e.window_ns) * s.recorded_ns)::BIGINT AS saved_ns,
    CASE WHEN e.is_certain THEN 'high' ELSE 'medium' END AS confidence, NULL::BIGINT AS event_id,
    lib.message('advice.slow_link', {'link': coalesce('rank ' || e.common_rank, 'host ' || e.common_host, e.channel), 'link_ratio': e.ratio}) AS message,
    format('FROM slow_links_v1(runs := [{}])', lib.sql_literal(e.run)) AS evidence_sql,
    'slow_links' AS next_analysis
FROM _ends AS e
JOIN query_table(spans) AS s ON s.run = e.run AND s.rank = e.rank
WHERE lib.is_requested(ranks, e.rank)
-- For a rank on several slow links, keep only the link with the largest loss.
QUALIFY row_number() OVER (PARTITION BY e.run, e.rank ORDER BY e.late_ns DESC, e.channel_id) = 1
