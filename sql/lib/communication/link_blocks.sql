-- Transfer time of each group and each pair of ranks in each block, for transfers that can be compared with others.
--
-- Transfers are compared between groups with the same description that run the same collective with the same size on
-- ranks in the same pattern (such as 0, 4, 8 and 1, 5, 9). Sets of fewer than three such groups are excluded, as are
-- blocks in which one of the groups transferred nothing.
CREATE OR REPLACE MACRO lib.link_blocks(
    runs,
    -- Name of a relation with the columns of lib.rank_blocks.
    blocks
) AS TABLE
-- Columns:
--   run         VARCHAR      Run name.
--   set_id      VARCHAR      Collective, message size, element type, group description and rank pattern.
--   item_id     BIGINT       Number of the channel.
--   channel     VARCHAR      Ranks of the channel, the pair of a point-to-point operation, the group's name or the stream.
--   link_ranks  INTEGER[]    Ranks of the channel.
--   is_p2p      BOOLEAN      Whether the channel consists of sends and receives.
--   block       BIGINT       Number of the block.
--   block_ns    BIGINT [ns]  Length of the block.
--   own_ns      BIGINT [ns]  Time of the channel's transfers in the block.
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
            m.run, m.collective_id, m.channel_id, m.rank, m.span, m.ts + m.dur - m.transfer_ns // 2 AS at_ts,
            concat_ws(' ', CASE WHEN m.is_p2p THEN 'p2p' ELSE m.collective END, coalesce(m.in_elems, -1), m.elem_type, m.pg_desc, p.pattern) AS kind,
            m.transfer_ns
        FROM matched_collectives AS m
        JOIN _members AS p ON p.run = m.run AND p.channel_id = m.channel_id
        WHERE m.is_complete AND m.end_times_match AND m.transfer_ns IS NOT NULL AND NOT m.is_startup AND lib.is_requested(runs, m.run)
        -- A collective belongs to the block that contains the middle of its transfer on its lowest rank, because
        -- blocks begin and end near the ends of collectives.
        QUALIFY row_number() OVER (PARTITION BY m.run, m.collective_id ORDER BY m.rank, m.event_id) = 1
    ),
    _blocks AS MATERIALIZED (
        SELECT b.run, b.item_id AS rank, b.span, b.block, b.ts, b.block_ns FROM query_table(blocks) AS b
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
    )
SELECT
    t.run,
    t.kind AS set_id,
    t.channel_id AS item_id,
    m.channel,
    m.link_ranks,
    m.is_p2p,
    t.block,
    t.block_ns,
    t.ns AS own_ns
FROM _times AS t
JOIN _siblings AS s ON s.run = t.run AND s.kind = t.kind
JOIN _members AS m ON m.run = t.run AND m.channel_id = t.channel_id
QUALIFY count(*) OVER (PARTITION BY t.run, t.kind, t.block) = s.n
