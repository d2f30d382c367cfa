-- How much memory each device had in use at most, when, and how much of what it has that is.
--
-- The numbers are the totals that torch's allocators wrote on each allocation and free; nothing is added up.
-- Reserved is what the caching allocator took from the driver, allocated what tensors hold of it. The difference is
-- told twice: unused_bytes was never needed at one time, so that another allocator setting might save it;
-- fragmentation_bytes is what lay unused just when the allocator had to take more, because no piece of it was large
-- enough; the rest of the newly reserved piece is in it. What was allocated before the recording counts in all totals
-- of devices; the host's count from the first recording of the process.
--
-- Title: Memory peaks
-- Status: stable
-- Since: 0.1
-- Scope: runs, ranks, steps; bytes are true in the last step too
-- Reference: TensorBoard profiler plugin, peak memory usage
-- Needs: memory events (profile_memory=True)
-- Report: first 2; table
CREATE OR REPLACE MACRO memory_peaks_v1(
    -- Runs to include; NULL means every run.
    runs VARCHAR[] := NULL,
    -- Ranks to include; NULL means every rank.
    ranks INTEGER[] := NULL,
    -- Profiler steps to include; NULL means every step, the last one too, and what lies outside of steps.
    steps BIGINT[] := NULL,
    -- Whether each profiler step has a row of its own.
    by_step BOOLEAN := false
) AS TABLE
-- Columns:
--   run                   VARCHAR         Run name.
--   rank                  INTEGER         Rank of the process.
--   device_type           INTEGER         Device type as torch numbers it: 0 CPU, 1 CUDA or ROCm.
--   device                BIGINT          Device number; -1: CPU.
--   step                  BIGINT          Profiler step; NULL where steps are not told apart, and outside of steps.
--   peak_allocated_bytes  BIGINT [bytes]  Highest allocated total; NULL where totals are not recorded.
--   peak_reserved_bytes   BIGINT [bytes]  Highest reserved total; NULL where nothing is reserved, as on the host.
--   peak_ts               BIGINT [ns]     When the allocated total was first that high, since the run's first event.
--   peak_event_id         BIGINT          The memory event of that moment.
--   capacity_bytes        BIGINT [bytes]  Memory of the device, by its properties; NULL if unknown, as on the host.
--   peak_pct              DOUBLE [%]      Higher of the two peaks, as a share of capacity_bytes.
--   unused_bytes          BIGINT [bytes]  Highest reserved total less highest allocated total.
--   fragmentation_bytes   BIGINT [bytes]  Reserved less allocated when the reserved total grew to its peak; NULL if it was there from the beginning.
--   before_bytes          BIGINT [bytes]  Allocated total before the first of these events.
--   end_bytes             BIGINT [bytes]  Allocated total after the last.
SELECT
    p.run,
    p.rank,
    p.device_type,
    p.device,
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
ORDER BY p.run, p.rank, p.device_type, p.device, p.step
