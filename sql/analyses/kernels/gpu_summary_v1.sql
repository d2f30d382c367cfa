-- Utilization, SM efficiency, occupancy, tensor core use and peak memory of each GPU.
--
-- Unless stated otherwise, shares are relative to recorded step time as the device sees it: a step lasts until the work
-- launched in it has ended. A trace without steps counts as one step. Time during which the device ran work that is not
-- in the trace (table unrecorded_time) does not count. Utilization is the share of time in which a
-- kernel runs; copies do not count. Estimated SM efficiency is, at each moment, the number of blocks per
-- multiprocessor summed over the running kernels; one block or more counts as 100 %. The estimate is a lower bound if
-- some launches do not record blocks per multiprocessor (sm_known_pct). Occupancy is a mean over kernel time; NCCL
-- kernels are recorded with 0. Use of tensor cores (AMD: matrix cores) is derived from kernel names (table
-- tensor_core_kernels). Time on tensor cores, and time with unknown tensor core use, are shares of kernel time. Memory
-- peaks are as in memory_peaks and include the last step.
--
-- Title: Utilization of each GPU
-- Shown: rank, device, utilization_pct, busy_pct, sm_efficiency_pct, occupancy_pct, tensor_core_pct, peak_allocated_bytes, peak_pct, device_name
-- Status: stable
-- Since: 0.1
-- Reference: TensorBoard profiler plugin, GPU summary
-- Needs: GPU activity; blocks and occupancy are recorded on CUDA, memory with profile_memory=True
-- Report: first 1
CREATE OR REPLACE MACRO gpu_summary_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    -- Profiler steps to include; NULL means every step, or the whole trace if it has no steps.
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false
) AS TABLE
-- Columns:
--   run                      VARCHAR         Run name.
--   rank                     INTEGER         Rank of the process.
--   device                   BIGINT          Device number.
--   device_name              VARCHAR         Device model; NULL if the trace does not describe the device.
--   compute_capability       VARCHAR         Compute capability, such as 9.0; NULL if the trace does not describe the device.
--   multiprocessor_count     BIGINT [count]  Number of multiprocessors; NULL if the trace does not describe the device.
--   observed_ns              BIGINT [ns]     Total step time as the device sees it.
--   recorded_ns              BIGINT [ns]     observed_ns without unrecorded time; the denominator of the shares.
--   kernel_ns                BIGINT [ns]     Time with at least one kernel running.
--   utilization_pct          DOUBLE [%]      kernel_ns as a share of recorded_ns; collectives that wait count, unlike in kpis.
--   busy_pct                 DOUBLE [%]      Time with a kernel, copy or memset running, as a share of recorded_ns.
--   sm_efficiency_pct        DOUBLE [%]      Estimated SM efficiency, as a share of recorded_ns; NULL if no launch records its number of blocks.
--   sm_known_pct             DOUBLE [%]      Share of summed kernel time whose launches record blocks per multiprocessor; NULL without kernels.
--   occupancy_pct            DOUBLE [%]      Mean estimated achieved occupancy of kernels, as a share of the warps that fit; NULL if not recorded. Kernels with more than 48 KiB of shared memory per block count as unknown if 0 is recorded: Kineto has no estimate for them.
--   occupancy_known_pct      DOUBLE [%]      Share of summed kernel time whose launches record occupancy; NULL without kernels.
--   tensor_core_pct          DOUBLE [%]      Share of summed kernel time that runs on tensor cores; NULL if unknown for all kernels.
--   tensor_core_unknown_pct  DOUBLE [%]      Share of summed kernel time whose kernel name does not show whether tensor cores are used; NULL without kernels.
--   peak_allocated_bytes     BIGINT [bytes]  Highest allocated total reported by the allocator; NULL without memory events.
--   peak_reserved_bytes      BIGINT [bytes]  Highest reserved total reported by the allocator; NULL without memory events.
--   capacity_bytes           BIGINT [bytes]  Device memory; NULL if the trace does not describe the device.
--   peak_pct                 DOUBLE [%]      Higher of the two peaks, as a share of capacity_bytes.
WITH
    windows AS MATERIALIZED (
        SELECT d.run, d.rank, d.from_ts, d.to_ts
        FROM lib.device_steps(runs, ranks, steps, include_last_profiler_step) AS d
    ),
    named AS MATERIALIZED (
        SELECT DISTINCT g.name
        FROM gpu_ops AS g
        WHERE g.kind = 'kernel' AND lib.is_requested(runs, g.run) AND lib.is_requested(ranks, g.rank)
    ),
    tensor AS (
        SELECT t.* FROM lib.tensor_core_names('named') AS t
    ),
    ops AS MATERIALIZED (
        SELECT
            g.run, g.rank, g.device, g.ts, g.ts + g.dur AS end_ts, g.kind = 'kernel' AS is_kernel,
            g.kind = 'kernel' AND coalesce(g.blocks_per_sm >= 0, false) AS knows_blocks,
            -- Values are in millionths, because sums of integers are exact. One block per multiprocessor counts as 100 %.
            CASE WHEN g.kind = 'kernel' AND g.blocks_per_sm >= 0 THEN round(1000000 * least(g.blocks_per_sm, 1))::BIGINT END AS blocks,
            CASE WHEN g.kind = 'kernel' THEN round(1000000 * lib.estimated_occupancy_pct(g.occupancy_pct, g.shared_memory_bytes))::BIGINT END AS occupancy,
            t.uses_tensor_cores
        FROM gpu_ops AS g
        LEFT JOIN tensor AS t ON t.name = g.name AND g.kind = 'kernel'
        WHERE g.class <> 'sync' AND NOT g.is_suspect AND g.dur > 0 AND lib.is_requested(runs, g.run) AND lib.is_requested(ranks, g.rank)
    ),
    -- One number identifies run, rank and device: sorting by one column takes half as long.
    lanes AS MATERIALIZED (
        SELECT o.run, o.rank, o.device, row_number() OVER (ORDER BY o.run, o.rank, o.device) AS lane
        FROM (SELECT DISTINCT p.run, p.rank, p.device FROM ops AS p) AS o
    ),
    lane_ops AS MATERIALIZED (
        SELECT l.lane, o.* EXCLUDE (run, rank, device)
        FROM ops AS o
        JOIN lanes AS l ON l.run = o.run AND l.rank = o.rank AND l.device IS NOT DISTINCT FROM o.device
    ),
    -- Layers: 1 kernels, 2 other operations, 3 unrecorded time, which contains no operations. Counters: 1 steps, 2 blocks
    -- per multiprocessor. Segments are cut at each operation.
    pieces AS MATERIALIZED (
        SELECT o.lane, o.ts, o.end_ts, CASE WHEN o.is_kernel THEN 1 ELSE 2 END AS layer, 0 AS count_1, 0::BIGINT AS count_2 FROM lane_ops AS o
        UNION ALL
        SELECT o.lane, o.ts, o.end_ts, 0, 0, coalesce(o.blocks, 0) FROM lane_ops AS o WHERE o.is_kernel
        UNION ALL
        SELECT l.lane, w.from_ts, w.to_ts, 0, 1, 0 FROM windows AS w JOIN lanes AS l ON l.run = w.run AND l.rank = w.rank
        UNION ALL
        SELECT l.lane, u.ts, u.ts + u.dur, 3, 0, 0
        FROM unrecorded_time AS u
        JOIN lanes AS l ON l.run = u.run AND l.rank = u.rank
        WHERE u.kind <> 'undecided' AND lib.is_requested(runs, u.run) AND lib.is_requested(ranks, u.rank)
    ),
    swept AS MATERIALIZED (
        SELECT s.lane, s.ts, s.dur AS ns, s.layer, s.count_1 > 0 AS in_step, s.count_2 AS blocks FROM lib.counted_segments('pieces') AS s
    ),
    summed AS (
        SELECT
            s.lane,
            sum(s.ns)::BIGINT AS observed_ns,
            sum(CASE WHEN s.layer = 3 THEN 0 ELSE s.ns END)::BIGINT AS recorded_ns,
            sum(CASE WHEN s.layer = 1 THEN s.ns ELSE 0 END)::BIGINT AS kernel_ns,
            sum(CASE WHEN s.layer IN (1, 2) THEN s.ns ELSE 0 END)::BIGINT AS busy_ns,
            sum(least(s.blocks, 1000000)::HUGEINT * s.ns) AS blocks
        FROM swept AS s
        WHERE s.in_step
        GROUP BY s.lane
    ),
    -- Prefix sums from the start of the lane: the time of a kernel in steps is the value at its end minus the value at
    -- its start.
    marks AS MATERIALIZED (
        SELECT
            s.lane, s.ts,
            coalesce(sum(CASE WHEN s.in_step THEN s.ns ELSE 0 END) OVER (PARTITION BY s.lane ORDER BY s.ts ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS stepped_ns
        FROM swept AS s
    ),
    kernels AS (
        SELECT o.lane, b.stepped_ns - a.stepped_ns AS ns, o.knows_blocks, o.occupancy, o.uses_tensor_cores
        FROM lane_ops AS o
        JOIN marks AS a ON a.lane = o.lane AND a.ts = o.ts
        JOIN marks AS b ON b.lane = o.lane AND b.ts = o.end_ts
        WHERE o.is_kernel
    ),
    kernel_sums AS (
        SELECT
            k.lane,
            sum(k.ns) AS kernel_sum,
            coalesce(sum(k.ns) FILTER (k.knows_blocks), 0) AS sm_known,
            coalesce(sum(k.ns) FILTER (k.occupancy IS NOT NULL), 0) AS occupancy_known,
            coalesce(sum(k.ns) FILTER (k.uses_tensor_cores), 0) AS on_tensor_cores,
            coalesce(sum(k.ns) FILTER (k.uses_tensor_cores IS NULL), 0) AS tensor_unknown,
            coalesce(sum(k.occupancy * k.ns), 0) AS occupancy
        FROM kernels AS k
        GROUP BY k.lane
    ),
    peaks AS (
        SELECT p.* FROM lib.memory_peaks(runs, ranks, steps, false) AS p WHERE p.device_type <> 0
    )
SELECT
    l.run,
    l.rank,
    l.device,
    n.name AS device_name,
    v.compute_major || '.' || v.compute_minor AS compute_capability,
    v.multiprocessor_count::BIGINT AS multiprocessor_count,
    s.observed_ns,
    s.recorded_ns,
    s.kernel_ns,
    100 * (s.kernel_ns / nullif(s.recorded_ns, 0)) AS utilization_pct,
    100 * (s.busy_ns / nullif(s.recorded_ns, 0)) AS busy_pct,
    CASE WHEN k.sm_known > 0 THEN s.blocks / nullif(s.recorded_ns, 0) / 10000 END AS sm_efficiency_pct,
    100 * (k.sm_known / nullif(k.kernel_sum, 0)) AS sm_known_pct,
    k.occupancy / nullif(k.occupancy_known, 0) / 1000000 AS occupancy_pct,
    100 * (k.occupancy_known / nullif(k.kernel_sum, 0)) AS occupancy_known_pct,
    CASE WHEN k.tensor_unknown < k.kernel_sum THEN 100 * (k.on_tensor_cores / k.kernel_sum) END AS tensor_core_pct,
    100 * (k.tensor_unknown / nullif(k.kernel_sum, 0)) AS tensor_core_unknown_pct,
    p.peak_allocated_bytes,
    p.peak_reserved_bytes,
    v.total_memory_bytes AS capacity_bytes,
    100 * (greatest(p.peak_allocated_bytes, p.peak_reserved_bytes) / nullif(v.total_memory_bytes, 0)) AS peak_pct
FROM summed AS s
JOIN lanes AS l ON l.lane = s.lane
LEFT JOIN kernel_sums AS k ON k.lane = s.lane
LEFT JOIN lib.device_models(runs, ranks) AS n ON n.run = l.run AND n.rank = l.rank AND n.device = l.device
LEFT JOIN devices AS v ON v.run = l.run AND v.rank = l.rank AND v.device = l.device
LEFT JOIN peaks AS p ON p.run = l.run AND p.rank = l.rank AND p.device = l.device
ORDER BY l.run, l.rank, l.device
