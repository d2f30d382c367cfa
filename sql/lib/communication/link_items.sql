-- Links in each block, as lib.judged_blocks compares them.
CREATE OR REPLACE MACRO lib.link_items(
    -- Name of a relation with the columns of lib.link_blocks.
    transfers,
    -- Minimum additional transfer time that counts, as a share of a block [%].
    smallest_pct
) AS TABLE
-- Columns:
--   item_kind  VARCHAR      link.
--   run        VARCHAR      Run name.
--   set_id     VARCHAR      Collective, message size, element type, group description and rank pattern.
--   item_id    BIGINT       Number of the channel.
--   block      BIGINT       Number of the block.
--   block_ns   BIGINT [ns]  Length of the block.
--   own_ns     BIGINT [ns]  Time of the channel's transfers in the block.
--   wait_ns    BIGINT [ns]  The negative of own_ns, because no rank waits for a link alone.
--   min_pct    DOUBLE [%]   Minimum lateness and cost that count, as a share of a block.
SELECT 'link' AS item_kind, t.run, t.set_id, t.item_id, t.block, t.block_ns, t.own_ns, -t.own_ns AS wait_ns, smallest_pct::DOUBLE AS min_pct
FROM query_table(transfers) AS t
