-- Every block of memory that was allocated or freed in the recording, with its size, its lifetime and what allocated it.
--
-- A free belongs to the allocation just before it at its address. Blocks whose other end lies outside of the recording
-- say so; those that do not fit - two allocations or two frees of an address in a row, a free of another size - are
-- suspect: events between them were lost, and nothing is guessed. Each memory event is in exactly one row.
--
-- Categories are torch's words, but follow from the surroundings, not from the tensors: parameter was allocated by the
-- constructor of one of torch's modules, or where a module was moved (buffers are too); temporary was freed
-- before the outermost operator around the allocation ended, in the backward pass before the one that names it did,
-- or in the optimizer's step that allocated it; input is of a data loader; optimizer state was allocated in the optimizer's step and outlives it; autograd was allocated
-- and freed in the backward pass, gradient allocated and not freed in it; activation was freed in it, or allocated
-- in an nn.Module call and freed outside of operators. What nothing tells is NULL.
--
-- Title: Every memory allocation
-- Status: stable
-- Since: 0.1
-- Scope: runs, ranks, steps; blocks belong to the step that allocated them and are true in the last step too
-- Reference: TensorBoard profiler plugin, memory events
-- Needs: memory events (profile_memory=True); modules, frames and parameters need with_stack
-- Ranks: independent
CREATE OR REPLACE MACRO memory_allocations_v1(
    -- Runs to include; NULL means every run.
    runs VARCHAR[] := NULL,
    -- Ranks to include; NULL means every rank.
    ranks INTEGER[] := NULL,
    -- Profiler steps of the allocations to include; NULL means every step, the last one too, and what lies outside of steps.
    steps BIGINT[] := NULL,
    -- Python frames that count for the one that called them, as a regular expression; NULL: none. By default what
    -- is of Python or PyTorch itself.
    hidden VARCHAR := '^<built-in|(^|/)torch/'
) AS TABLE
-- Columns:
--   run            VARCHAR         Run name.
--   rank           INTEGER         Rank of the process.
--   device_type    INTEGER         Device type as torch numbers it: 0 CPU, 1 CUDA or ROCm.
--   device         BIGINT          Device number; -1: CPU.
--   addr           BIGINT          Address; NULL where it is not recorded.
--   bytes          BIGINT [bytes]  Size.
--   state          VARCHAR         freed; held to the end of the recording; held before it, and freed in it; suspect: its other end was lost, or there is no address.
--   allocated_ts   BIGINT [ns]     When it was allocated, since the run's first event; NULL if that was not seen.
--   freed_ts       BIGINT [ns]     When it was freed; NULL if that was not seen.
--   lifetime_ns    BIGINT [ns]     The time between; NULL if not both were seen.
--   category       VARCHAR         What it is by where it was allocated and freed: parameter, temporary, input, optimizer state, autograd, gradient, activation; NULL if that cannot be told.
--   operator_name  VARCHAR         Nearest operator around the allocation that does more than make room; NULL outside of operators.
--   module         VARCHAR         nn.Module call around the allocation, of the forward operator in the backward pass; NULL if there is none or it is not known.
--   frame          VARCHAR         Nearest Python frame around the allocation that is not hidden, of the forward operator in the backward pass; NULL if there is none or it is not known.
--   step           BIGINT          Profiler step in which it was allocated; NULL outside of steps.
--   allocation_id  BIGINT          Memory event that allocated it.
--   free_id        BIGINT          Memory event that freed it.
--   op_id          BIGINT          Nearest operator around the allocation, whatever it does.
WITH
    blocks AS MATERIALIZED (
        SELECT b.*
        FROM lib.memory_blocks(runs, ranks) AS b
        WHERE lib.is_requested(steps, b.step)
    ),
    described AS (
        FROM lib.described_blocks('blocks', hidden)
    )
SELECT
    b.run,
    b.rank,
    b.device_type,
    b.device,
    b.addr,
    b.bytes,
    b.state,
    b.allocated_ts,
    b.freed_ts,
    b.freed_ts - b.allocated_ts AS lifetime_ns,
    d.category,
    d.operator_name,
    d.module,
    d.frame,
    b.step,
    b.allocation_id,
    b.free_id,
    b.op_id
FROM blocks AS b
LEFT JOIN described AS d ON d.run = b.run AND d.rank = b.rank AND d.allocation_id = b.allocation_id
ORDER BY
    b.run, b.rank, b.device_type, b.device, coalesce(b.allocated_ts, b.freed_ts), b.position, coalesce(b.allocation_id, b.free_id)
