-- Every memory block allocated or freed in the recording, with size, lifetime, category and the code that allocated
-- it.
--
-- A free belongs to the previous allocation at its address. state shows whether a block was allocated or freed outside
-- the recording. Inconsistent blocks (two allocations or two frees in a row at one address, or a free of a different
-- size) are suspect: some events were lost, and missing values are not guessed. Each memory event is in exactly one
-- row.
--
-- Categories use the terms of torch, but are derived from the surrounding calls, not from the tensors:
--
-- - parameter: allocated by the constructor of a torch module, or while a module was moved (includes buffers).
-- - temporary: freed before the outermost operator around the allocation ended. In the backward pass, freed before
--   the operator in operator_name ended; in the optimizer, freed within the same optimizer step.
-- - input: allocated by a data loader.
-- - optimizer state: allocated in the optimizer step and not freed in it.
-- - autograd: allocated and freed in the backward pass.
-- - gradient: allocated in the backward pass and not freed in it.
-- - activation: freed in the backward pass, or allocated in an nn.Module call and freed outside operators.
--
-- The category of other blocks is NULL.
--
-- Title: Every memory allocation
-- Shown: rank, device_label, bytes, lifetime_ns, category, operator_name, frame, step, state, allocated_ts
-- Status: stable
-- Since: 0.1
-- Scope: runs, ranks, steps; blocks belong to the step that allocated them and are valid in the last step too
-- Reference: TensorBoard profiler plugin, memory events
-- Needs: memory events (profile_memory=True); modules, frames and parameters need with_stack
-- Ranks: independent
CREATE OR REPLACE MACRO memory_allocations_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    -- Profiler steps of the allocations to include; NULL means every step, including the last one, and all activity
    -- outside steps.
    steps BIGINT[] := NULL,
    -- Python frames to attribute to their caller, as a regular expression; NULL: none. The default hides frames of
    -- Python and PyTorch itself.
    hidden VARCHAR := '^<built-in|(^|/)torch/'
) AS TABLE
-- Columns:
--   run            VARCHAR         Run name.
--   rank           INTEGER         Rank of the process.
--   device_type    INTEGER         Device type as torch numbers it: 0 CPU, 1 CUDA or ROCm.
--   device         BIGINT          Device number; -1: CPU.
--   device_label   VARCHAR         Name of the device: CPU, or GPU with its number; NULL if not recorded.
--   addr           BIGINT          Memory address; NULL if not recorded.
--   bytes          BIGINT [bytes]  Size of the block.
--   state          VARCHAR         freed; held to the end; held before (allocated before the recording, freed in it); suspect (the matching allocation or free was lost, or there is no address).
--   allocated_ts   BIGINT [ns]     Time of the allocation, relative to the run's first event; NULL if not in the trace.
--   freed_ts       BIGINT [ns]     Time of the free, relative to the run's first event; NULL if not in the trace.
--   lifetime_ns    BIGINT [ns]     Time from allocation to free; NULL unless both are in the trace.
--   category       VARCHAR         parameter, temporary, input, optimizer state, autograd, gradient or activation; NULL if unknown.
--   operator_name  VARCHAR         Innermost operator that encloses the allocation and does more than allocate; NULL outside operators.
--   module         VARCHAR         nn.Module call that encloses the allocation or, in the backward pass, the forward operator; NULL if there is none or it is unknown.
--   frame          VARCHAR         Innermost Python frame that encloses the allocation or, in the backward pass, the forward operator, and that does not match hidden; NULL if there is none or it is unknown.
--   step           BIGINT          Profiler step of the allocation; NULL outside steps.
--   allocation_id  BIGINT          event_id of the allocation.
--   free_id        BIGINT          event_id of the free.
--   op_id          BIGINT          event_id of the innermost enclosing operator of any kind.
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
    lib.device_label(b.device_type, b.device) AS device_label,
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
