-- Memory in use at the peak of each device, by category and by the operator and module that allocated it.
--
-- The bytes of a device sum exactly to its peak_allocated_bytes in memory_peaks. Blocks allocated before the recording
-- are known individually only if they are freed during the recording. All other blocks from before the recording are
-- combined in one row (held before and never freed); they are usually parameters and optimizer state. If the profiler
-- lost events, the missing bytes form a separate row (lost). See memory_allocations for the categories.
--
-- Title: Memory in use at the peak
-- Shown: rank, device_label, bytes, peak_pct, category, operator_name, frame, block_count, module, state
-- Also: out of memory, oom, memory breakdown
-- Status: stable
-- Since: 0.1
-- Scope: runs, ranks, steps; memory totals are valid in the last step too
-- Reference: torch memory snapshot at the peak
-- Needs: memory events (profile_memory=True); modules, frames and parameters need with_stack
-- Report: first 3; at most 64 ranks; if memory_events
CREATE OR REPLACE MACRO live_at_peak_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    -- Profiler steps to search for the peak; NULL means every step, including the last one, and all activity outside
    -- steps.
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
--   state          VARCHAR         freed later; held to the end; held before (allocated before the recording, freed in it); held before and never freed; suspect (other events at the same address were lost); lost (counted by the allocator, but in none of the other rows).
--   category       VARCHAR         parameter, temporary, input, optimizer state, autograd, gradient or activation; NULL if unknown.
--   operator_name  VARCHAR         Innermost operator that encloses the allocation and does more than allocate; NULL outside operators, or if the allocation is not in the trace.
--   module         VARCHAR         nn.Module call that encloses the allocation or, in the backward pass, the forward operator; NULL if there is none or it is unknown.
--   frame          VARCHAR         Innermost Python frame that encloses the allocation or, in the backward pass, the forward operator, and that does not match hidden; NULL if there is none or it is unknown.
--   block_count    BIGINT [count]  Number of blocks; NULL if state is lost, or held before and never freed.
--   bytes          BIGINT [bytes]  Bytes in use; negative only for lost.
--   peak_pct       DOUBLE [%]      bytes as a share of the peak.
--   oldest_ns      BIGINT [ns]     Age of the oldest block at the peak; NULL if its allocation is not in the trace.
--   event_id       BIGINT          event_id of the largest block's allocation (the first one if several are equal), or of its free if the allocation is not in the trace; NULL without blocks.
--   peak_ts        BIGINT [ns]     Time of the peak, relative to the run's first event.
WITH
    peaks AS MATERIALIZED (
        SELECT
            p.run, p.rank, p.device_type, p.device, p.peak_allocated_bytes AS peak, p.peak_ts, p.peak_position, p.peak_id,
            lib.span_of(p.peak_id) AS span
        FROM lib.memory_peaks(runs, ranks, steps, false) AS p
        WHERE p.peak_allocated_bytes IS NOT NULL
    ),
    -- Use only the recording that contains the peak.
    blocks AS MATERIALIZED (
        SELECT b.*
        FROM lib.memory_blocks(runs, ranks) AS b
        JOIN peaks AS p
            ON p.run = b.run AND p.rank = b.rank AND p.span = b.span AND p.device_type IS NOT DISTINCT FROM b.device_type
            AND p.device IS NOT DISTINCT FROM b.device
    ),
    befores AS (
        SELECT
            m.run, m.rank, m.device_type, m.device,
            arg_min(m.total_allocated_bytes - m.bytes, (m.ts, coalesce(m.profiler_event_index, 0), m.event_id)) AS before_bytes
        FROM memory_events AS m
        JOIN peaks AS p
            ON p.run = m.run AND p.rank = m.rank AND p.span = m.span AND p.device_type IS NOT DISTINCT FROM m.device_type
            AND p.device IS NOT DISTINCT FROM m.device
        GROUP BY ALL
    ),
    live AS MATERIALIZED (
        SELECT b.*, p.peak_ts
        FROM blocks AS b
        JOIN peaks AS p
            ON p.run = b.run AND p.rank = b.rank AND p.device_type IS NOT DISTINCT FROM b.device_type
            AND p.device IS NOT DISTINCT FROM b.device
        WHERE
            b.allocation_id IS NOT NULL
            AND (b.allocated_ts, b.position, b.allocation_id) <= (p.peak_ts, p.peak_position, p.peak_id)
            AND (b.gone_id IS NULL OR (b.gone_ts, b.gone_position, b.gone_id) > (p.peak_ts, p.peak_position, p.peak_id))
            OR b.state = 'held before' AND (b.freed_ts, b.position, b.free_id) > (p.peak_ts, p.peak_position, p.peak_id)
    ),
    described AS (
        FROM lib.described_blocks('live', hidden)
    ),
    known AS MATERIALIZED (
        SELECT
            v.run, v.rank, v.device_type, v.device, CASE v.state WHEN 'freed' THEN 'freed later' ELSE v.state END AS state,
            d.category, d.operator_name, d.module, d.frame, count(*) AS block_count, sum(v.bytes)::BIGINT AS bytes,
            max(v.peak_ts - v.allocated_ts) AS oldest_ns,
            arg_max(coalesce(v.allocation_id, v.free_id), (v.bytes, -coalesce(v.allocated_ts, v.freed_ts), -v.position, -coalesce(v.allocation_id, v.free_id))) AS event_id
        FROM live AS v
        LEFT JOIN described AS d ON d.run = v.run AND d.rank = v.rank AND d.allocation_id = v.allocation_id
        GROUP BY ALL
    ),
    summed AS (
        SELECT k.run, k.rank, k.device_type, k.device, sum(k.bytes)::BIGINT AS bytes
        FROM known AS k
        GROUP BY k.run, k.rank, k.device_type, k.device
    ),
    freed_before AS (
        SELECT b.run, b.rank, b.device_type, b.device, sum(b.bytes)::BIGINT AS bytes
        FROM blocks AS b
        WHERE b.state = 'held before'
        GROUP BY b.run, b.rank, b.device_type, b.device
    ),
    rests AS (
        SELECT
            p.*,
            -- Memory that is never freed: the total at the start, minus the part that is freed later.
            greatest(0, w.before_bytes - coalesce(f.bytes, 0)) AS never_freed,
            p.peak - coalesce(s.bytes, 0) AS unseen
        FROM peaks AS p
        JOIN befores AS w
            ON w.run = p.run AND w.rank = p.rank AND w.device_type IS NOT DISTINCT FROM p.device_type
            AND w.device IS NOT DISTINCT FROM p.device
        LEFT JOIN freed_before AS f
            ON f.run = p.run AND f.rank = p.rank AND f.device_type IS NOT DISTINCT FROM p.device_type
            AND f.device IS NOT DISTINCT FROM p.device
        LEFT JOIN summed AS s
            ON s.run = p.run AND s.rank = p.rank AND s.device_type IS NOT DISTINCT FROM p.device_type
            AND s.device IS NOT DISTINCT FROM p.device
    ),
    rows AS (
        FROM known
        UNION ALL BY NAME
        SELECT r.run, r.rank, r.device_type, r.device, 'held before and never freed' AS state, r.never_freed AS bytes
        FROM rests AS r
        WHERE r.never_freed > 0
        UNION ALL BY NAME
        SELECT r.run, r.rank, r.device_type, r.device, 'lost' AS state, r.unseen - r.never_freed AS bytes
        FROM rests AS r
        WHERE r.unseen <> r.never_freed
    )
SELECT
    r.run,
    r.rank,
    r.device_type,
    r.device,
    lib.device_label(r.device_type, r.device) AS device_label,
    r.state,
    r.category,
    r.operator_name,
    r.module,
    r.frame,
    r.block_count,
    r.bytes,
    100 * (r.bytes / nullif(p.peak, 0)) AS peak_pct,
    r.oldest_ns,
    r.event_id,
    p.peak_ts
FROM rows AS r
JOIN peaks AS p
    ON p.run = r.run AND p.rank = r.rank AND p.device_type IS NOT DISTINCT FROM r.device_type
    AND p.device IS NOT DISTINCT FROM r.device
ORDER BY r.run, r.rank, p.peak DESC, r.device_type, r.device, r.bytes DESC, r.state, r.category, r.operator_name, r.module, r.frame
