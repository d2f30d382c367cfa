-- Groups and pairs of ranks whose transfers are slower than those of others.
--
-- Transfers are compared with those of the same collective, size and number of ranks in other groups, step after step.
-- A transfer begins when the last rank has started, so that waiting for a rank makes no link slow. Fewer than three
-- groups that do the same tell nothing: then there are no rows, as there are none if no link is slow.
--
-- Title: Slow links
-- Status: experimental
-- Since: 0.1
-- Scope: runs, ranks; a verdict needs all steps of a capture
-- Reference: msprof-analyze slow_link
-- Needs: collectives or sends and receives of three groups that are matched across ranks
CREATE OR REPLACE MACRO slow_links_v1(
    -- Runs to include; NULL means every run.
    runs VARCHAR[] := NULL,
    -- Ranks to include, as members of the link; NULL means every rank.
    ranks INTEGER[] := NULL,
    -- Smallest share of the time that the transfers take more, in percent.
    min_pct DOUBLE := 1.0
) AS TABLE
-- Columns:
--   run           VARCHAR      Run name.
--   channel       VARCHAR      Ranks of the group, or the pair.
--   link_ranks    VARCHAR      Its ranks as JSON.
--   collective    VARCHAR      Collective whose transfers differ most, or p2p.
--   verdict       VARCHAR      slow or suspected (few data).
--   odds          DOUBLE [1]   Probability that chance makes any link of the run look like this one.
--   ratio         DOUBLE [1]   Length of its transfers, as a multiple of the median of the others.
--   late_ns       BIGINT [ns]  How much longer its transfers take.
--   cost_ns       BIGINT [ns]  The same, at most the transfer of its ranks that is not overlapped by compute.
--   cost_pct      DOUBLE [%]   That as a share of the compared time.
--   common_rank   INTEGER      Rank that all slow links of the run have in common, and no link that is as fast as usual; NULL if there is none.
--   message_code  VARCHAR      Code of the message in the table messages.
--   message       VARCHAR      What was found, in a sentence.
WITH
    blocks AS MATERIALIZED (
        SELECT b.* FROM lib.rank_blocks(runs) AS b
    ),
    slow AS (
        SELECT l.* FROM lib.slow_links(runs, 'blocks', min_pct) AS l
    ),
    told AS (
        SELECT
            s.*,
            100 * (s.cost_ns / s.window_ns) AS cost_pct,
            CASE
                WHEN s.common_rank IS NULL
                    THEN lib.message('slow_links.link', {'channel': s.channel, 'ratio': s.ratio, 'cost_pct': 100 * (s.cost_ns / s.window_ns)})
                ELSE lib.message(
                    'slow_links.common_rank',
                    {'channel': s.channel, 'ratio': s.ratio, 'cost_pct': 100 * (s.cost_ns / s.window_ns), 'common_rank': s.common_rank}
                )
            END AS message
        FROM slow AS s
    )
SELECT
    t.run,
    t.channel,
    to_json(t.link_ranks)::VARCHAR AS link_ranks,
    t.collective,
    CASE WHEN t.is_certain THEN 'slow' ELSE 'suspected' END AS verdict,
    t.odds,
    t.ratio,
    t.late_ns,
    t.cost_ns,
    t.cost_pct,
    t.common_rank,
    t.message.code AS message_code,
    lib.message_text(m.message, t.message.fields) AS message
FROM told AS t
LEFT JOIN messages AS m ON m.code = t.message.code
WHERE ranks IS NULL OR list_has_any(t.link_ranks, ranks)
ORDER BY t.run, t.cost_ns DESC, t.channel_id
