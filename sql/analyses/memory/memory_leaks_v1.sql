-- Memory allocated during the recording and not freed by its end, by the code that allocated it; growing memory first.
--
-- Memory that is allocated once and never freed, such as optimizer state, is not a leak. Memory that every step leaves
-- behind is a leak (is_growing). The last step is excluded, because the next step may free its blocks. Blocks from any
-- earlier step have outlived the whole last step. A cache that is still filling looks like a leak.
--
-- Title: Memory not freed at the end
-- Shown: rank, device_label, is_growing, growth_bytes, live_bytes, category, operator_name, frame, live_count, leaking_step_count
-- Also: leaks, leak
-- Status: stable
-- Since: 0.1
-- Scope: runs, ranks; memory held at the end depends on all steps
-- Reference: growth of memory_allocated over steps
-- Needs: memory events (profile_memory=True); growth needs three profiler steps, and modules and frames need with_stack
-- Report: table; at most 64 ranks; if memory_events
CREATE OR REPLACE MACRO memory_leaks_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    -- Python frames to attribute to their caller, as a regular expression; NULL: none. The default hides frames of
    -- Python and PyTorch itself.
    hidden VARCHAR := '^<built-in|(^|/)torch/'
) AS TABLE
-- Columns:
--   run                 VARCHAR         Run name.
--   rank                INTEGER         Rank of the process.
--   device_type         INTEGER         Device type as torch numbers it: 0 CPU, 1 CUDA or ROCm.
--   device              BIGINT          Device number; -1: CPU.
--   device_label        VARCHAR         Name of the device: CPU, or GPU with its number; NULL if not recorded.
--   operator_name       VARCHAR         Innermost operator that encloses the allocation and does more than allocate; NULL outside operators.
--   module              VARCHAR         nn.Module call that encloses the allocation or, in the backward pass, the forward operator; NULL if there is none or it is unknown.
--   frame               VARCHAR         Innermost Python frame that encloses the allocation or, in the backward pass, the forward operator, and that does not match hidden; NULL if there is none or it is unknown.
--   category            VARCHAR         optimizer state, gradient and so on, as in memory_allocations; NULL if unknown.
--   is_growing          BOOLEAN         Whether every step, not counting the last one, allocated blocks that are still held; NULL for fewer than two such steps.
--   growth_bytes        BIGINT [bytes]  Memory still held per step: the minimum over all steps except the last; NULL unless is_growing is true.
--   live_count          BIGINT [count]  Number of blocks held at the end.
--   live_bytes          BIGINT [bytes]  Total size of these blocks.
--   leaking_step_count  BIGINT [count]  Number of steps, except the last, with blocks still held.
--   step_count          BIGINT [count]  Number of steps of the rank, except the last.
--   first_step          BIGINT          First step with blocks still held, including the last step; NULL if all blocks are from outside steps.
--   event_id            BIGINT          event_id of the first allocation.
WITH
    held AS MATERIALIZED (
        SELECT b.* FROM lib.memory_blocks(runs, ranks) AS b WHERE b.state = 'held to the end'
    ),
    described AS (
        FROM lib.described_blocks('held', hidden)
    ),
    judged AS MATERIALIZED (
        SELECT s.run, s.rank, s.step, count(*) OVER (PARTITION BY s.run, s.rank) AS step_count
        FROM steps AS s
        WHERE NOT s.is_last AND lib.is_requested(runs, s.run) AND lib.is_requested(ranks, s.rank)
    ),
    counts AS (
        SELECT j.run, j.rank, any_value(j.step_count) AS step_count FROM judged AS j GROUP BY j.run, j.rank
    ),
    by_step AS (
        SELECT
            h.run, h.rank, h.device_type, h.device, d.operator_name, d.module, d.frame, d.category, h.step, j.step IS NOT NULL AS is_judged,
            count(*) AS live_count, sum(h.bytes)::BIGINT AS live_bytes,
            min({'ts': h.allocated_ts, 'position': h.position, 'event_id': h.allocation_id}) AS first_block
        FROM held AS h
        JOIN described AS d ON d.run = h.run AND d.rank = h.rank AND d.allocation_id = h.allocation_id
        LEFT JOIN judged AS j ON j.run = h.run AND j.rank = h.rank AND j.step = h.step
        GROUP BY ALL
    ),
    summed AS (
        SELECT
            b.run, b.rank, b.device_type, b.device, b.operator_name, b.module, b.frame, b.category,
            count_if(b.is_judged)::BIGINT AS leaving_count,
            min(b.live_bytes) FILTER (b.is_judged) AS least_bytes,
            sum(b.live_count)::BIGINT AS live_count, sum(b.live_bytes)::BIGINT AS live_bytes,
            min(b.step) AS first_step, min(b.first_block).event_id AS event_id
        FROM by_step AS b
        GROUP BY ALL
    ),
    told AS (
        SELECT
            s.*, coalesce(c.step_count, 0) AS step_count,
            CASE WHEN c.step_count >= 2 THEN s.leaving_count = c.step_count END AS grows
        FROM summed AS s
        LEFT JOIN counts AS c ON c.run = s.run AND c.rank = s.rank
    )
SELECT
    t.run,
    t.rank,
    t.device_type,
    t.device,
    lib.device_label(t.device_type, t.device) AS device_label,
    t.operator_name,
    t.module,
    t.frame,
    t.category,
    t.grows AS is_growing,
    CASE WHEN t.grows THEN t.least_bytes END AS growth_bytes,
    t.live_count,
    t.live_bytes,
    t.leaving_count AS leaking_step_count,
    t.step_count,
    t.first_step,
    t.event_id
FROM told AS t
ORDER BY
    t.run, t.rank, t.device_type, t.device, coalesce(t.grows, false) DESC, t.live_bytes DESC, t.operator_name, t.module, t.frame, t.category
