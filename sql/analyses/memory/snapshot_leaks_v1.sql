-- Memory allocated in a span of the history and still in use at the end, by stack; growing stacks first.
--
-- The span is divided into parts with equal numbers of allocations. A stack is growing if every part, not counting the
-- last one, has blocks from the stack that are still in use. Such a stack is a leak, or a cache that is still filling.
-- The last part is ignored, because its blocks may be freed next. Choose a span without the first steps, which
-- allocate permanent memory.
--
-- Title: Memory that grows in the snapshot
-- Shown: rank, is_growing, live_bytes, live_count, category, frame, leaving_part_count, device
-- Status: stable
-- Since: 0.1
-- Scope: runs, ranks; a snapshot has no steps
-- Reference: none
-- Needs: memory snapshots with their history (torch.cuda.memory._record_memory_history)
-- Report: first 8; table; at most 16 ranks; if snapshot_blocks or snapshot_events or snapshot_segments
CREATE OR REPLACE MACRO snapshot_leaks_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    -- Include allocations from this Unix time on [ns]; NULL means from the beginning.
    from_ns BIGINT := NULL,
    -- Include allocations before this Unix time [ns]; NULL means until the end.
    until_ns BIGINT := NULL,
    -- Number of parts into which the span is divided.
    part_count BIGINT := 5
) AS TABLE
-- Columns:
--   run                 VARCHAR         Run name.
--   rank                INTEGER         Rank of the process.
--   device              BIGINT          Device number.
--   category            VARCHAR         parameters, gradients, activations, optimizer, sharding, communication or unknown.
--   is_growing          BOOLEAN         Whether every part of the span, not counting the last one, has blocks in use at the end; NULL for fewer than two such parts.
--   live_count          BIGINT [count]  Number of blocks that were allocated in the span and are in use at the end.
--   live_bytes          BIGINT [bytes]  Total size of these blocks.
--   leaving_part_count  BIGINT [count]  Number of parts of the span, except the last, with blocks in use at the end.
--   first_ns            BIGINT [ns]     Unix time when the first of these blocks was allocated.
--   last_ns             BIGINT [ns]     Unix time when the last of these blocks was allocated.
--   frame               VARCHAR         Line of the user's program that allocated these blocks; NULL if unknown.
--   folded_stack        VARCHAR         Stack of the allocation, starting with the outermost frame; NULL if unknown.
WITH
    allocations AS (
        SELECT a.*, ntile(part_count) OVER (PARTITION BY a.run, a.rank, a.device ORDER BY a.alloc_event_id) AS part
        FROM lib.snapshot_allocations(runs, ranks) AS a
        WHERE a.alloc_event_id IS NOT NULL AND (from_ns IS NULL OR a.alloc_ns >= from_ns) AND (until_ns IS NULL OR a.alloc_ns < until_ns)
    ),
    with_last AS (
        SELECT a.*, max(a.part) OVER (PARTITION BY a.run, a.rank, a.device) AS last_part FROM allocations AS a
    ),
    summed AS (
        SELECT
            a.run, a.rank, a.device, a.stack_id, a.last_part, count(*) AS live_count, sum(a.bytes)::BIGINT AS live_bytes,
            count(DISTINCT a.part) FILTER (a.part < a.last_part) AS leaving_parts, min(a.alloc_ns) AS first_ns, max(a.alloc_ns) AS last_ns
        FROM with_last AS a
        WHERE a.free_event_id IS NULL
        GROUP BY ALL
    )
SELECT
    s.run,
    s.rank,
    s.device,
    coalesce(t.category, 'unknown') AS category,
    CASE WHEN s.last_part > 2 THEN s.leaving_parts = s.last_part - 1 END AS is_growing,
    s.live_count,
    s.live_bytes,
    s.leaving_parts AS leaving_part_count,
    s.first_ns,
    s.last_ns,
    t.frame,
    t.folded_stack
FROM summed AS s
LEFT JOIN lib.snapshot_stack_texts(runs, ranks) AS t ON t.run = s.run AND t.rank = s.rank AND t.stack_id = s.stack_id
ORDER BY
    s.run, s.rank, s.device, coalesce(s.last_part > 2 AND s.leaving_parts = s.last_part - 1, false) DESC, s.live_bytes DESC, t.folded_stack, t.frame, s.stack_id
