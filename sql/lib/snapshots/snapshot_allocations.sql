-- Allocations in memory snapshots, with the events that allocate and free the block.
--
-- An allocation without an allocating event existed before the history begins: either an event frees it, or it is an
-- allocated block of the snapshot. An allocation without a freeing event was in use when the snapshot was written.
CREATE OR REPLACE MACRO lib.snapshot_allocations(
    runs,
    ranks
) AS TABLE
-- Columns:
--   run             VARCHAR         Run name.
--   rank            INTEGER         Rank of the process.
--   device          BIGINT          Device number.
--   address         BIGINT [1]      Address of the block.
--   bytes           BIGINT [bytes]  Size of the block.
--   stack_id        BIGINT          Stack that allocated the block; NULL if unknown.
--   alloc_event_id  BIGINT          Allocating event; NULL if the block was allocated before the history begins.
--   free_event_id   BIGINT          Freeing event; NULL if the block was in use at the end.
--   alloc_ns        BIGINT [ns]     Unix time of the allocation.
--   free_ns         BIGINT [ns]     Unix time of the free.
WITH
    _changes AS MATERIALIZED (
        SELECT
            e.run, e.rank, e.device, e.address, e.bytes, e.stack_id, e.event_id, e.time_ns, e.action = 'alloc' AS is_alloc,
            lead(e.event_id) OVER _block AS next_id, lead(e.action = 'alloc') OVER _block AS is_next_alloc, lead(e.time_ns) OVER _block AS next_ns,
            lag(e.action = 'alloc') OVER _block AS is_after_alloc
        FROM snapshot_events AS e
        WHERE
            lib.is_requested(runs, e.run) AND lib.is_requested(ranks, e.rank)
            AND e.action IN ('alloc', 'free_completed', 'free') AND e.address IS NOT NULL AND e.bytes IS NOT NULL
        WINDOW _block AS (PARTITION BY e.run, e.rank, e.device, e.address ORDER BY e.event_id)
    )
SELECT
    c.run, c.rank, c.device, c.address, c.bytes, c.stack_id,
    c.event_id AS alloc_event_id,
    CASE WHEN NOT c.is_next_alloc THEN c.next_id END AS free_event_id,
    c.time_ns AS alloc_ns,
    CASE WHEN NOT c.is_next_alloc THEN c.next_ns END AS free_ns
FROM _changes AS c
WHERE c.is_alloc
UNION ALL
SELECT c.run, c.rank, c.device, c.address, c.bytes, NULL, NULL, c.event_id, NULL, c.time_ns
FROM _changes AS c
WHERE NOT c.is_alloc AND NOT coalesce(c.is_after_alloc, false)
UNION ALL
SELECT b.run, b.rank, b.device, b.address, b.bytes, b.stack_id, NULL, NULL, NULL, NULL
FROM snapshot_blocks AS b
WHERE
    lib.is_requested(runs, b.run) AND lib.is_requested(ranks, b.rank) AND b.state = 'active_allocated'
    AND NOT EXISTS (
        SELECT 1
        FROM _changes AS c
        WHERE c.run = b.run AND c.rank = b.rank AND c.device = b.device AND c.address = b.address AND c.is_alloc AND c.next_id IS NULL
    )
