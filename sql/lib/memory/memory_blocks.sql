-- Memory blocks: each allocation with its free, if the recording contains both.
--
-- Addresses are reused, so a free belongs to the previous allocation at its address. Inconsistent events (two
-- allocations or two frees in a row, a free of a different size) become two blocks, each with its allocation or its
-- free missing; a missing event is never guessed. Each event is in exactly one block.
CREATE OR REPLACE MACRO lib.memory_blocks(
    runs,
    ranks
) AS TABLE
-- Columns:
--   run            VARCHAR         Run name.
--   rank           INTEGER         Rank of the process.
--   span           INTEGER         Recording of the rank.
--   device_type    INTEGER         Device type as torch numbers it: 0 CPU, 1 CUDA or ROCm.
--   device         BIGINT          Device number; -1: CPU.
--   addr           BIGINT          Memory address; NULL if not recorded.
--   bytes          BIGINT [bytes]  Size of the block.
--   state          VARCHAR         freed; held to the end; held before (allocated before the recording, freed in it); suspect (the matching allocation or free was lost, or there is no address).
--   allocation_id  BIGINT          event_id of the allocation; NULL if not in the trace.
--   allocated_ts   BIGINT [ns]     Time of the allocation, relative to the run's first event; NULL if not in the trace.
--   free_id        BIGINT          event_id of the free; NULL if not in the trace.
--   freed_ts       BIGINT [ns]     Time of the free, relative to the run's first event; NULL if not in the trace.
--   op_id          BIGINT          event_id of the innermost operator that encloses the allocation; NULL if none or not in the trace, as in the following columns.
--   annotation_id  BIGINT          event_id of the innermost user annotation that encloses the allocation.
--   module_id      BIGINT          event_id of the innermost nn.Module call that encloses the allocation.
--   stack_id       BIGINT          Row of stacks with the names of the events that enclose the allocation.
--   step           BIGINT          Profiler step of the allocation.
--   free_op_id     BIGINT          event_id of the innermost operator that encloses the free.
--   position       BIGINT [1]      Position of the allocation (or of the free, if the allocation is missing) among memory events with the same time.
--   gone_ts        BIGINT [ns]     Time of the next event at the block's address, after which the block no longer exists; NULL if there is none.
--   gone_position  BIGINT [1]      Position of that event among memory events with the same time.
--   gone_id        BIGINT          event_id of that event.
WITH
    -- One small number replaces the keys: a window over string keys takes twice as long.
    _lanes AS MATERIALIZED (
        SELECT d.*, row_number() OVER (ORDER BY d.run, d.rank, d.span, d.device_type, d.device)::INTEGER AS lane
        FROM (
            SELECT DISTINCT m.run, m.rank, m.span, m.device_type, m.device
            FROM memory_events AS m
            WHERE lib.is_requested(runs, m.run) AND lib.is_requested(ranks, m.rank)
        ) AS d
    ),
    _ordered AS (
        SELECT
            l.lane, m.addr, m.event_id, m.ts, m.bytes, m.op_id, m.annotation_id, m.module_id, m.stack_id, m.step,
            coalesce(m.profiler_event_index, 0) AS position,
            lag(m.bytes) OVER of_address AS previous_bytes,
            lead(m.bytes) OVER of_address AS next_bytes,
            lead(m.event_id) OVER of_address AS next_id,
            lead(m.ts) OVER of_address AS next_ts,
            lead(coalesce(m.profiler_event_index, 0)) OVER of_address AS next_position,
            lead(m.op_id) OVER of_address AS next_op_id
        FROM memory_events AS m
        JOIN _lanes AS l
            ON l.run = m.run AND l.rank = m.rank AND l.span = m.span AND l.device_type IS NOT DISTINCT FROM m.device_type
            AND l.device IS NOT DISTINCT FROM m.device
        WHERE m.bytes <> 0
        WINDOW of_address AS (PARTITION BY l.lane, m.addr ORDER BY m.ts, coalesce(m.profiler_event_index, 0), m.event_id)
    ),
    _judged AS (
        SELECT
            o.*,
            o.bytes > 0 AS is_allocation,
            o.addr IS NOT NULL AND o.bytes > 0 AND coalesce(o.next_bytes = -o.bytes, false) AS is_freed,
            o.addr IS NOT NULL AND coalesce(o.bytes = -o.previous_bytes AND o.bytes < 0, false) AS is_of_pair
        FROM _ordered AS o
    )
SELECT
    l.run,
    l.rank,
    l.span,
    l.device_type,
    l.device,
    j.addr,
    abs(j.bytes) AS bytes,
    CASE
        WHEN j.is_freed THEN 'freed'
        WHEN j.addr IS NULL THEN 'suspect'
        WHEN j.is_allocation AND j.next_bytes IS NULL THEN 'held to the end'
        WHEN NOT j.is_allocation AND j.previous_bytes IS NULL THEN 'held before'
        ELSE 'suspect'
    END AS state,
    CASE WHEN j.is_allocation THEN j.event_id END AS allocation_id,
    CASE WHEN j.is_allocation THEN j.ts END AS allocated_ts,
    CASE WHEN j.is_freed THEN j.next_id WHEN NOT j.is_allocation THEN j.event_id END AS free_id,
    CASE WHEN j.is_freed THEN j.next_ts WHEN NOT j.is_allocation THEN j.ts END AS freed_ts,
    CASE WHEN j.is_allocation THEN j.op_id END AS op_id,
    CASE WHEN j.is_allocation THEN j.annotation_id END AS annotation_id,
    CASE WHEN j.is_allocation THEN j.module_id END AS module_id,
    CASE WHEN j.is_allocation THEN j.stack_id END AS stack_id,
    CASE WHEN j.is_allocation THEN j.step END AS step,
    CASE WHEN j.is_freed THEN j.next_op_id WHEN NOT j.is_allocation THEN j.op_id END AS free_op_id,
    j.position,
    CASE WHEN j.addr IS NOT NULL THEN j.next_ts END AS gone_ts,
    CASE WHEN j.addr IS NOT NULL THEN j.next_position END AS gone_position,
    CASE WHEN j.addr IS NOT NULL THEN j.next_id END AS gone_id
FROM _judged AS j
JOIN _lanes AS l ON l.lane = j.lane
WHERE NOT j.is_of_pair
