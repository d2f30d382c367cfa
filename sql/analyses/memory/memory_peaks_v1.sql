-- Peak memory of each device, its time, and its share of the device's capacity.
--
-- The values are the totals that torch's allocators recorded with each allocation and free; nothing is summed up.
-- Reserved memory is the memory that the caching allocator took from the driver; allocated memory is the part used by
-- tensors. Their difference is reported in two ways. unused_bytes is reserved memory that was never needed, so
-- different allocator settings might save it. fragmentation_bytes is memory that was unused when the allocator had to
-- reserve more, because no free segment was large enough; it includes the unused part of the new segment. Device
-- totals include memory allocated before the recording. Host totals start with the first recording of the process.
--
-- Title: Memory peaks
-- Shown: rank, device_label, step, peak_allocated_bytes, peak_pct, peak_reserved_bytes, fragmentation_bytes, unused_bytes, capacity_bytes
-- Also: peak memory, max memory, memory usage, vram, memory
-- Status: stable
-- Since: 0.1
-- Scope: runs, ranks, steps; memory totals are valid in the last step too
-- Reference: TensorBoard profiler plugin, peak memory usage
-- Needs: memory events (profile_memory=True)
-- Report: first 2; table; if memory_events
CREATE OR REPLACE MACRO memory_peaks_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    -- Profiler steps to include; NULL means every step, including the last one, and all activity outside steps.
    steps BIGINT[] := NULL,
    -- Whether to return one row per step.
    by_step BOOLEAN := false
) AS TABLE
-- Columns:
--   run                   VARCHAR         Run name.
--   rank                  INTEGER         Rank of the process.
--   device_type           INTEGER         Device type as torch numbers it: 0 CPU, 1 CUDA or ROCm.
--   device                BIGINT          Device number; -1: CPU.
--   device_label          VARCHAR         Name of the device: CPU, or GPU with its number; NULL if not recorded.
--   step                  BIGINT          Profiler step; NULL without by_step, and outside steps.
--   peak_allocated_bytes  BIGINT [bytes]  Highest allocated total; NULL if totals are not recorded.
--   peak_reserved_bytes   BIGINT [bytes]  Highest reserved total; NULL if nothing is reserved, as on the host.
--   peak_ts               BIGINT [ns]     Time at which the allocated total first reached its peak, relative to the run's first event.
--   peak_event_id         BIGINT          event_id of the memory event at peak_ts.
--   capacity_bytes        BIGINT [bytes]  Memory of the device according to its properties; NULL if unknown, as on the host.
--   peak_pct              DOUBLE [%]      Higher of the two peaks, as a share of capacity_bytes.
--   unused_bytes          BIGINT [bytes]  Highest reserved total minus highest allocated total.
--   fragmentation_bytes   BIGINT [bytes]  Reserved minus allocated total when the reserved total grew to its peak; NULL if it never grew.
--   before_bytes          BIGINT [bytes]  Allocated total before the first event in scope.
--   end_bytes             BIGINT [bytes]  Allocated total after the last event in scope.
SELECT
    p.run,
    p.rank,
    p.device_type,
    p.device,
    lib.device_label(p.device_type, p.device) AS device_label,
    p.step,
    p.peak_allocated_bytes,
    p.peak_reserved_bytes,
    p.peak_ts AS peak_ts,
    p.peak_id AS peak_event_id,
    p.capacity_bytes,
    100 * (greatest(p.peak_allocated_bytes, p.peak_reserved_bytes) / nullif(p.capacity_bytes, 0)) AS peak_pct,
    p.peak_reserved_bytes - p.peak_allocated_bytes AS unused_bytes,
    p.grown_unused_bytes AS fragmentation_bytes,
    p.before_bytes,
    p.end_bytes
FROM lib.memory_peaks(runs, ranks, steps, by_step) AS p
ORDER BY
    p.run, p.rank, max(p.peak_allocated_bytes) OVER (PARTITION BY p.run, p.rank, p.device_type, p.device) DESC NULLS LAST, p.device_type,
    p.device, p.step
