-- Ranks, pipeline stages and links in each block, as lib.judged_blocks compares them.
--
-- The time of a stage is the median over its ranks (the faster rank if there are two), so a slow rank does not make a
-- slow stage. The capture cuts the stages of a pipeline at different points. With four to seven blocks, the first or
-- last block therefore does not count for stages if it is shorter than 90 % of the median length. With more blocks, a
-- cut block has little weight.
CREATE OR REPLACE MACRO lib.compared_items(
    -- Name of a relation with the columns of lib.rank_blocks.
    blocks,
    -- Name of a relation with the columns of lib.link_blocks.
    transfers,
    -- Minimum lateness and cost that count for ranks and links, as a share of a block [%]; for stages, the minimum is
    -- 5.
    smallest_pct
) AS TABLE
-- Columns:
--   item_kind  VARCHAR      rank, stage or link.
--   run        VARCHAR      Run name.
--   set_id     VARCHAR      Set of peers.
--   item_id    BIGINT       Number of the rank, stage or link.
--   block      BIGINT       Number of the block.
--   block_ns   BIGINT [ns]  Length of the block.
--   own_ns     BIGINT [ns]  Own time of the item in the block.
--   wait_ns    BIGINT [ns]  Wait of the item in the block; for links, the negative of own_ns.
--   min_pct    DOUBLE [%]   Minimum lateness and cost that count, as a share of a block.
WITH
    _staged AS (
        SELECT
            b.*,
            b.block IN (min(b.block) OVER _run, max(b.block) OVER _run)
                AND max(b.block) OVER _run - min(b.block) OVER _run + 1 BETWEEN lib.judging().least_cut_blocks AND lib.judging().most_cut_blocks
                AND b.block_ns < lib.judging().cut_stage_share * median(b.block_ns) OVER _run AS is_cut
        FROM query_table(blocks) AS b
        WHERE b.stage IS NOT NULL
        WINDOW _run AS (PARTITION BY b.run)
    )
SELECT
    'rank' AS item_kind, b.run, b.set_id, b.item_id::BIGINT AS item_id, b.block, b.block_ns, b.own_ns, b.wait_ns,
    smallest_pct::DOUBLE AS min_pct
FROM query_table(blocks) AS b
UNION ALL
SELECT
    'stage', b.run, 'stages', b.stage, b.block, min(b.block_ns),
    quantile_disc(b.own_ns, 0.5), -quantile_disc(-b.wait_ns, 0.5), lib.judging().stage_pct::DOUBLE
FROM _staged AS b
WHERE NOT b.is_cut
GROUP BY b.run, b.stage, b.block
UNION ALL
SELECT 'link', t.run, t.set_id, t.item_id, t.block, t.block_ns, t.own_ns, -t.own_ns, smallest_pct::DOUBLE
FROM query_table(transfers) AS t
