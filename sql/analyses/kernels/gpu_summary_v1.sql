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
    -- Runs to include; NULL means every run.
    runs VARCHAR[] := NULL,
    -- Ranks to include; NULL means every rank.
    ranks INTEGER[] := NULL,
    -- Profiler steps to include; NULL means every step, or the whole trace if it has no steps.
    steps BIGINT[] := NULL,
    -- Whether to include the last profiler step; a run's only step is always included.
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
    -- Five 10-bit counters packed into one integer: kernels, then kernels with blocks, with occupancy, on tensor
    -- cores, and with unknown tensor core use.
    ops AS MATERIALIZED (
        SELECT
            g.run, g.rank, g.device, g.ts, g.ts + g.dur AS end_ts,
            CASE WHEN g.kind = 'kernel' THEN 1 ELSE 0 END
            + CASE WHEN g.kind = 'kernel' AND g.blocks_per_sm >= 0 THEN 1::BIGINT << 10 ELSE 0 END
            + CASE WHEN g.kind = 'kernel' AND lib.estimated_occupancy_pct(g.occupancy_pct, g.shared_memory_bytes) IS NOT NULL THEN 1::BIGINT << 20 ELSE 0 END
            + CASE WHEN t.uses_tensor_cores THEN 1::BIGINT << 30 ELSE 0 END
            + CASE WHEN g.kind = 'kernel' AND t.uses_tensor_cores IS NULL THEN 1::BIGINT << 40 ELSE 0 END AS unit,
            -- Values are in millionths: running sums of integers below 2^53 are exact.
            CASE WHEN g.kind = 'kernel' AND g.blocks_per_sm >= 0 THEN round(1000000 * g.blocks_per_sm) ELSE 0 END AS blocks,
            CASE WHEN g.kind = 'kernel' THEN coalesce(round(1000000 * lib.estimated_occupancy_pct(g.occupancy_pct, g.shared_memory_bytes)), 0) ELSE 0 END AS occupancy,
            CASE WHEN g.kind = 'kernel' THEN 0 ELSE 1 END AS copies
        FROM gpu_ops AS g
        LEFT JOIN tensor AS t ON t.name = g.name AND g.kind = 'kernel'
        WHERE g.class <> 'sync' AND NOT g.is_suspect AND g.dur > 0 AND lib.is_requested(runs, g.run) AND lib.is_requested(ranks, g.rank)
    ),
    active AS (
        SELECT DISTINCT o.run, o.rank, o.device FROM ops AS o
    ),
    unrecorded AS (
        SELECT u.run, u.rank, u.ts, u.ts + u.dur AS end_ts
        FROM unrecorded_time AS u
        WHERE u.kind <> 'undecided' AND lib.is_requested(runs, u.run) AND lib.is_requested(ranks, u.rank)
    ),
    bounds AS (
        SELECT o.run, o.rank, o.device, o.ts AS at_ts, o.unit, o.blocks, o.occupancy, o.copies, 0 AS in_step, 0 AS missing FROM ops AS o
        UNION ALL
        SELECT o.run, o.rank, o.device, o.end_ts, -o.unit, -o.blocks, -o.occupancy, -o.copies, 0, 0 FROM ops AS o
        UNION ALL
        SELECT a.run, a.rank, a.device, w.from_ts, 0, 0, 0, 0, 1, 0 FROM windows AS w JOIN active AS a ON a.run = w.run AND a.rank = w.rank
        UNION ALL
        SELECT a.run, a.rank, a.device, w.to_ts, 0, 0, 0, 0, -1, 0 FROM windows AS w JOIN active AS a ON a.run = w.run AND a.rank = w.rank
        UNION ALL
        SELECT a.run, a.rank, a.device, u.ts, 0, 0, 0, 0, 0, 1 FROM unrecorded AS u JOIN active AS a ON a.run = u.run AND a.rank = u.rank
        UNION ALL
        SELECT a.run, a.rank, a.device, u.end_ts, 0, 0, 0, 0, 0, -1 FROM unrecorded AS u JOIN active AS a ON a.run = u.run AND a.rank = u.rank
    ),
    changes AS (
        SELECT
            b.run, b.rank, b.device, b.at_ts,
            sum(b.unit)::DOUBLE AS unit, sum(b.blocks) AS blocks, sum(b.occupancy) AS occupancy,
            sum(b.copies)::DOUBLE AS copies, sum(b.in_step)::DOUBLE AS in_step, sum(b.missing)::DOUBLE AS missing
        FROM bounds AS b
        GROUP BY b.run, b.rank, b.device, b.at_ts
    ),
    swept AS (
        SELECT
            c.run, c.rank, c.device,
            lead(c.at_ts) OVER so_far - c.at_ts AS ns,
            (sum(c.unit) OVER so_far)::BIGINT AS running,
            (sum(c.blocks) OVER so_far)::BIGINT AS blocks,
            (sum(c.occupancy) OVER so_far)::BIGINT AS occupancy,
            sum(c.copies) OVER so_far > 0 AS copies,
            sum(c.in_step) OVER so_far > 0 AS in_step,
            sum(c.missing) OVER so_far > 0 AS is_missing
        FROM changes AS c
        WINDOW so_far AS (PARTITION BY c.run, c.rank, c.device ORDER BY c.at_ts ROWS UNBOUNDED PRECEDING)
    ),
    summed AS (
        SELECT
            s.run, s.rank, s.device,
            sum(s.ns)::BIGINT AS observed_ns,
            sum(CASE WHEN s.is_missing THEN 0 ELSE s.ns END)::BIGINT AS recorded_ns,
            sum(CASE WHEN s.running & 1023 > 0 THEN s.ns ELSE 0 END)::BIGINT AS kernel_ns,
            sum(CASE WHEN s.running & 1023 > 0 OR s.copies THEN s.ns ELSE 0 END)::BIGINT AS busy_ns,
            sum((s.running & 1023) * s.ns) AS kernel_sum,
            sum((s.running >> 10 & 1023) * s.ns) AS sm_known,
            sum((s.running >> 20 & 1023) * s.ns) AS occupancy_known,
            sum((s.running >> 30 & 1023) * s.ns) AS on_tensor_cores,
            sum((s.running >> 40 & 1023) * s.ns) AS tensor_unknown,
            sum(least(s.blocks, 1000000)::HUGEINT * s.ns) AS blocks,
            sum(s.occupancy::HUGEINT * s.ns) AS occupancy
        FROM swept AS s
        WHERE s.in_step
        GROUP BY s.run, s.rank, s.device
    ),
    peaks AS (
        SELECT p.* FROM lib.memory_peaks(runs, ranks, steps, false) AS p WHERE p.device_type = 1
    )
SELECT
    s.run,
    s.rank,
    s.device,
    n.name AS device_name,
    v.compute_major || '.' || v.compute_minor AS compute_capability,
    v.multiprocessor_count::BIGINT AS multiprocessor_count,
    s.observed_ns,
    s.recorded_ns,
    s.kernel_ns,
    100 * (s.kernel_ns / nullif(s.recorded_ns, 0)) AS utilization_pct,
    100 * (s.busy_ns / nullif(s.recorded_ns, 0)) AS busy_pct,
    CASE WHEN s.sm_known > 0 THEN s.blocks / nullif(s.recorded_ns, 0) / 10000 END AS sm_efficiency_pct,
    100 * (s.sm_known / nullif(s.kernel_sum, 0)) AS sm_known_pct,
    s.occupancy / nullif(s.occupancy_known, 0) / 1000000 AS occupancy_pct,
    100 * (s.occupancy_known / nullif(s.kernel_sum, 0)) AS occupancy_known_pct,
    CASE WHEN s.tensor_unknown < s.kernel_sum THEN 100 * (s.on_tensor_cores / s.kernel_sum) END AS tensor_core_pct,
    100 * (s.tensor_unknown / nullif(s.kernel_sum, 0)) AS tensor_core_unknown_pct,
    p.peak_allocated_bytes,
    p.peak_reserved_bytes,
    v.total_memory_bytes AS capacity_bytes,
    100 * (greatest(p.peak_allocated_bytes, p.peak_reserved_bytes) / nullif(v.total_memory_bytes, 0)) AS peak_pct
FROM summed AS s
LEFT JOIN lib.device_models(runs, ranks) AS n ON n.run = s.run AND n.rank = s.rank AND n.device = s.device
LEFT JOIN devices AS v ON v.run = s.run AND v.rank = s.rank AND v.device = s.device
LEFT JOIN peaks AS p ON p.run = s.run AND p.rank = s.rank AND p.device = s.device
ORDER BY s.run, s.rank, s.device
