-- Which groups and pairs of ranks transfer slower than others do, block after block, and what that costs.
--
-- Transfers are compared between groups that run the same collective of the same size on ranks of the same description and
-- pattern (0, 4, 8 and 1, 5, 9), as ranks are for their own work; fewer than three such groups tell nothing. A link is slow if its transfers take 1.3 times as
-- long as the median of the others, not by chance. If several links are slow and one rank is in all of them, and in no link as
-- fast as usual, that rank's network is slow.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib.slow_links(
    -- Runs to include; NULL means every run.
    runs,
    -- Name of a relation with the columns of lib.rank_blocks.
    blocks,
    -- Smallest share of the time that its transfers take more, in percent.
    min_pct
) AS TABLE
-- Columns:
--   run          VARCHAR         Run name.
--   channel_id   BIGINT          Number of the channel.
--   channel      VARCHAR         Its ranks, the pair of a point-to-point operation, the group's name or the stream.
--   collective   VARCHAR         Collective that is slow, or p2p.
--   link_ranks   INTEGER[]       Its ranks.
--   is_certain   BOOLEAN         The verdict would be straggler, if the link were a rank; else it is suspected.
--   ratio        DOUBLE [1]      Its transfers, as a multiple of the median of the others.
--   window_ns    BIGINT [ns]     Length of the blocks that were compared.
--   late_ns      BIGINT [ns]     How much longer its transfers take.
--   cost_ns      BIGINT [ns]     The same, at most the exposed transfer of its ranks.
--   odds         DOUBLE [1]      Probability that chance makes any link look like this.
--   common_rank  INTEGER         Rank that all slow links of the run have in common; NULL if there is none.
WITH
    _channel_ranks AS (
        SELECT m.run, m.channel_id, any_value(m.channel) AS channel, list(DISTINCT m.rank ORDER BY m.rank) AS link_ranks, bool_and(m.is_p2p) AS is_p2p
        FROM matched_collectives AS m
        WHERE lib.is_requested(runs, m.run)
        GROUP BY m.run, m.channel_id
    ),
    _members AS MATERIALIZED (
        SELECT c.*, array_to_string(list_transform(c.link_ranks, lambda r: r - c.link_ranks[1]), ',') AS pattern FROM _channel_ranks AS c
    ),
    _collectives AS (
        SELECT
            m.run, m.collective_id, m.channel_id, m.rank, m.span, m.ts + m.dur AS at_ts,
            concat_ws(' ', CASE WHEN m.is_p2p THEN 'p2p' ELSE m.collective END, coalesce(m.in_elems, -1), m.elem_type, m.pg_desc, p.pattern) AS kind,
            m.transfer_ns
        FROM matched_collectives AS m
        JOIN _members AS p ON p.run = m.run AND p.channel_id = m.channel_id
        WHERE m.is_complete AND m.end_times_match AND m.transfer_ns IS NOT NULL AND NOT m.is_startup AND lib.is_requested(runs, m.run)
        -- A collective is in the block of its end on its lowest rank.
        QUALIFY row_number() OVER (PARTITION BY m.run, m.collective_id ORDER BY m.rank, m.event_id) = 1
    ),
    _blocks AS MATERIALIZED (
        SELECT b.run, b.item_id AS rank, b.span, b.block, b.ts, b.block_ns, b.transfer_ns FROM query_table(blocks) AS b
    ),
    _ordered AS (
        SELECT o.*, last_value(o.block IGNORE NULLS) OVER (PARTITION BY o.run, o.rank, o.span ORDER BY o.at_ts, o.is_end ROWS UNBOUNDED PRECEDING) AS in_block
        FROM (
            SELECT b.run, b.rank, b.span, b.ts AS at_ts, false AS is_end, b.block, NULL::BIGINT AS collective_id FROM _blocks AS b
            UNION ALL
            SELECT c.run, c.rank, c.span, c.at_ts, true, NULL, c.collective_id FROM _collectives AS c
        ) AS o
    ),
    _times AS MATERIALIZED (
        SELECT
            c.run, c.channel_id, c.kind, o.in_block AS block, min(b.block_ns) AS block_ns,
            sum(c.transfer_ns)::BIGINT AS ns
        FROM _ordered AS o
        JOIN _collectives AS c ON c.run = o.run AND c.collective_id = o.collective_id
        JOIN _blocks AS b ON b.run = o.run AND b.rank = o.rank AND b.block = o.in_block
        WHERE o.at_ts <= b.ts + b.block_ns
        GROUP BY c.run, c.channel_id, c.kind, o.in_block
    ),
    _siblings AS (
        SELECT t.run, t.kind, count(DISTINCT t.channel_id) AS n FROM _times AS t GROUP BY t.run, t.kind HAVING count(DISTINCT t.channel_id) >= 3
    ),
    -- Blocks in which all of the groups transferred.
    _link_blocks AS MATERIALIZED (
        SELECT
            t.run, t.kind AS set_id, t.channel_id AS item_id, t.block, t.block_ns, t.ns AS own_ns, -t.ns AS wait_ns
        FROM _times AS t
        JOIN _siblings AS s ON s.run = t.run AND s.kind = t.kind
        QUALIFY count(*) OVER (PARTITION BY t.run, t.kind, t.block) = s.n
    ),
    _judged AS MATERIALIZED (
        SELECT j.*, j.own_ns / nullif(j.peer_own_ns, 0) AS ratio FROM lib.judged_blocks('_link_blocks', min_pct) AS j WHERE j.peer_count >= 2
    ),
    _slow AS MATERIALIZED (
        SELECT
            j.run, j.item_id AS channel_id, split_part(j.set_id, ' ', 1) AS collective, j.level = 'late' AS is_certain, j.ratio, j.block_count, j.block_ns, j.mean_late_ns, j.p,
            m.channel, m.link_ranks
        FROM _judged AS j
        JOIN _members AS m ON m.run = j.run AND m.channel_id = j.item_id
        WHERE j.level IN ('late', 'suspected') AND j.ratio >= 1.3 AND j.block_count > 1
        -- Of several sizes, the one that costs most.
        QUALIFY row_number() OVER (PARTITION BY j.run, j.item_id ORDER BY j.mean_late_ns DESC, j.set_id) = 1
    ),
    _fast_ranks AS (
        SELECT j.run, unnest(m.link_ranks) AS rank
        FROM _judged AS j
        JOIN _members AS m ON m.run = j.run AND m.channel_id = j.item_id
        WHERE NOT m.is_p2p AND NOT EXISTS (FROM _slow AS s WHERE s.run = j.run AND s.channel_id = j.item_id)
    ),
    _memberships AS (
        SELECT s.run, unnest(s.link_ranks) AS rank FROM _slow AS s
    ),
    _common AS (
        SELECT m.run, m.rank
        FROM _memberships AS m
        JOIN (SELECT s.run, count(*) AS n FROM _slow AS s GROUP BY s.run) AS c ON c.run = m.run
        WHERE NOT EXISTS (FROM _fast_ranks AS f WHERE f.run = m.run AND f.rank = m.rank)
        GROUP BY m.run, m.rank
        HAVING count(*) = any_value(c.n) AND count(*) > 1
        QUALIFY count(*) OVER (PARTITION BY m.run) = 1
    ),
    _exposed AS (
        SELECT s.run, s.channel_id, sum(b.transfer_ns) / count(DISTINCT b.rank) AS ns
        FROM _slow AS s
        JOIN _blocks AS b ON b.run = s.run AND list_contains(s.link_ranks, b.rank)
        GROUP BY s.run, s.channel_id
    )
SELECT
    s.run, s.channel_id, s.channel, s.collective, s.link_ranks, s.is_certain, s.ratio,
    round(s.block_ns * s.block_count)::BIGINT AS window_ns,
    round(s.mean_late_ns * s.block_count)::BIGINT AS late_ns,
    round(least(s.mean_late_ns * s.block_count, e.ns))::BIGINT AS cost_ns,
    s.p AS odds,
    c.rank AS common_rank
FROM _slow AS s
JOIN _exposed AS e ON e.run = s.run AND e.channel_id = s.channel_id
LEFT JOIN _common AS c ON c.run = s.run
WHERE 100 * least(s.mean_late_ns * s.block_count, e.ns) >= min_pct * s.block_ns * s.block_count
