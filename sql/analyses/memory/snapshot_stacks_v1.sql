-- Blocks of memory snapshots by the stack that allocated them: in use, waiting for another stream, or free.
--
-- Rounding is the memory that the allocator added to the requested sizes. In some versions of torch, free blocks have
-- the stack of their last use.
--
-- Title: Memory by stack
-- Shown: rank, bytes, block_count, category, state, frame
-- Status: stable
-- Since: 0.1
-- Scope: runs, ranks; a snapshot has no steps
-- Reference: torch.cuda._memory_viz.memory
-- Needs: memory snapshots; stacks need torch.cuda.memory._record_memory_history
-- Report: first 6; chart; at most 16 ranks; if snapshot_blocks or snapshot_events or snapshot_segments
-- Chart:
--   mark = "bars"
--   title = "Memory in use in the snapshot, by source line"
--   empty = "No block was in use."
--   where.state = "active_allocated"
--   top = 20
--   name = "frame"
--   unnamed = "no stack"
--   value = "bytes"
--   measure = "In use"
--   legend = "Category"
--   part = "category"
--   parts.parameters = ["parameters", "#0072B2"]
--   parts.gradients = ["gradients", "#D55E00"]
--   parts.activations = ["activations", "#009E73"]
--   parts.optimizer = "optimizer"
--   parts.sharding = ["sharding", "#8FBC5A"]
--   parts.communication = "communication"
--   parts.unknown = ["unknown", "#CCCCCC"]
--   tooltip.block_count = "Blocks"
CREATE OR REPLACE MACRO snapshot_stacks_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    -- State of the blocks; NULL means every state.
    only_state VARCHAR := NULL
) AS TABLE
-- Columns:
--   run              VARCHAR         Run name.
--   rank             INTEGER         Rank of the process.
--   device           BIGINT          Device number.
--   stream           BIGINT          Device stream of the segments.
--   state            VARCHAR         State of the blocks, as in snapshot_blocks.
--   category         VARCHAR         parameters, gradients, activations, optimizer, sharding, communication or unknown.
--   block_count      BIGINT [count]  Number of blocks.
--   bytes            BIGINT [bytes]  Total size of these blocks.
--   requested_bytes  BIGINT [bytes]  Requested size of these blocks.
--   rounding_bytes   BIGINT [bytes]  bytes minus requested_bytes.
--   frame            VARCHAR         Line of the user's program; NULL if unknown.
--   folded_stack     VARCHAR         Stack, starting with the outermost frame; NULL if unknown.
SELECT
    b.run,
    b.rank,
    b.device,
    b.stream,
    b.state,
    coalesce(t.category, 'unknown') AS category,
    count(*) AS block_count,
    sum(b.bytes)::BIGINT AS bytes,
    sum(b.requested_bytes)::BIGINT AS requested_bytes,
    sum(b.bytes - b.requested_bytes)::BIGINT AS rounding_bytes,
    t.frame,
    t.folded_stack
FROM snapshot_blocks AS b
LEFT JOIN lib.snapshot_stack_texts(runs, ranks) AS t ON t.run = b.run AND t.rank = b.rank AND t.stack_id = b.stack_id
WHERE lib.is_requested(runs, b.run) AND lib.is_requested(ranks, b.rank) AND (only_state IS NULL OR b.state = only_state)
GROUP BY ALL
ORDER BY b.run, b.rank, b.device, bytes DESC, b.stream, b.state, category, t.folded_stack, t.frame
