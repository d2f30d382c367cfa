-- Ranks in each block, as lib.judged_blocks compares them.
CREATE OR REPLACE MACRO lib.rank_items(
    -- Name of a relation with the columns of lib.rank_blocks.
    blocks,
    -- Minimum lateness and cost that count, as a share of a block [%].
    smallest_pct
) AS TABLE
-- Columns:
--   item_kind  VARCHAR      rank.
--   run        VARCHAR      Run name.
--   set_id     VARCHAR      Set of peers: the role (if stated), followed by the stage or, if unknown, by the lowest rank to which collectives connect the rank.
--   item_id    BIGINT       Rank of the process.
--   block      BIGINT       Number of the block.
--   block_ns   BIGINT [ns]  Length of the block.
--   own_ns     BIGINT [ns]  Time spent neither in exposed transfer nor in exposed wait.
--   wait_ns    BIGINT [ns]  Exposed wait.
--   min_pct    DOUBLE [%]   Minimum lateness and cost that count, as a share of a block.
SELECT 'rank' AS item_kind, b.run, b.set_id, b.item_id::BIGINT AS item_id, b.block, b.block_ns, b.own_ns, b.wait_ns, smallest_pct::DOUBLE AS min_pct
FROM query_table(blocks) AS b
