-- Groups and pairs of ranks whose transfers are slower than the same transfers in other groups or pairs.
--
-- Transfers are compared, step by step, with transfers of the same collective, size and number of ranks in other
-- groups. A transfer begins when the last rank has started, so waiting for a rank does not make a link slow. The
-- comparison needs at least three groups with the same transfers. Otherwise, or if no link is slow, there are no rows.
--
-- Title: Slow links
-- Shown: channel, collective, verdict, ratio, late_ns, cost_ns, cost_pct, message
-- Status: experimental
-- Since: 0.1
-- Scope: runs, ranks; a verdict needs all steps of a capture
-- Reference: msprof-analyze slow_link
-- Needs: collectives or sends and receives of three groups that are matched across ranks
CREATE OR REPLACE MACRO slow_links_v1(
    runs VARCHAR[] := NULL,
    -- Ranks to include, as members of the link; NULL means every rank.
    ranks INTEGER[] := NULL,
    -- Minimum additional transfer time, as a share of the compared time [%].
    min_pct DOUBLE := 1.0
) AS TABLE
-- Columns:
--   run           VARCHAR      Run name.
--   channel       VARCHAR      Ranks of the group, or of the pair.
--   link_ranks    VARCHAR      Ranks of the link as JSON.
--   collective    VARCHAR      Collective whose transfers differ most, or p2p.
--   verdict       VARCHAR      slow, or suspected (too little data).
--   odds          DOUBLE [1]   Probability that chance alone makes any link of the run this slow.
--   ratio         DOUBLE [1]   Duration of the link's transfers as a multiple of the median of the other links.
--   late_ns       BIGINT [ns]  Time that the link's transfers take beyond the median of the other links.
--   cost_ns       BIGINT [ns]  late_ns, limited to the exposed transfer time of the link's ranks.
--   cost_pct      DOUBLE [%]   cost_ns as a share of the compared time.
--   common_rank   INTEGER      Rank that is in all slow links of the run and in no normal link; NULL if there is none.
--   common_host   VARCHAR      Host crossed by all slow links of the run and by no normal link; NULL if there is none, or if there is a common rank.
--   message_code  VARCHAR      Code of the message in the table messages.
--   message       VARCHAR      Finding in one sentence.
WITH
    pipeline AS (
        FROM lib.pipeline_ranks(runs)
    ),
    blocks AS MATERIALIZED (
        SELECT b.* FROM lib.rank_blocks(runs, 'pipeline') AS b
    ),
    transfers AS MATERIALIZED (
        SELECT t.* FROM lib.link_blocks(runs, 'blocks') AS t
    ),
    items AS MATERIALIZED (
        SELECT
            'link' AS item_kind, t.run, t.set_id, t.item_id, t.block, t.block_ns, t.own_ns, -t.own_ns AS wait_ns,
            min_pct::DOUBLE AS min_pct
        FROM transfers AS t
    ),
    judged AS MATERIALIZED (
        SELECT j.* FROM lib.judged_blocks('items') AS j
    ),
    slow AS (
        SELECT l.* FROM lib.slow_links(runs, 'blocks', 'transfers', 'judged', min_pct) AS l
    ),
    told AS (
        SELECT
            s.*,
            100 * (s.cost_ns / s.window_ns) AS cost_pct,
            CASE
                WHEN s.common_rank IS NOT NULL THEN lib.message(
                    'slow_links.common_rank',
                    {'channel': s.channel, 'ratio': s.ratio, 'cost_pct': 100 * (s.cost_ns / s.window_ns), 'common_rank': s.common_rank}
                )
                WHEN s.common_host IS NOT NULL THEN lib.message(
                    'slow_links.common_host',
                    {'channel': s.channel, 'ratio': s.ratio, 'cost_pct': 100 * (s.cost_ns / s.window_ns), 'common_host': s.common_host}
                )
                ELSE lib.message('slow_links.link', {'channel': s.channel, 'ratio': s.ratio, 'cost_pct': 100 * (s.cost_ns / s.window_ns)})
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
    t.common_host,
    t.message.code AS message_code,
    lib.message_text(m.message, t.message.fields) AS message
FROM told AS t
LEFT JOIN messages AS m ON m.code = t.message.code
WHERE ranks IS NULL OR list_has_any(t.link_ranks, ranks)
ORDER BY t.run, t.cost_ns DESC, t.channel_id
