-- Key figures of each run: step time, utilization, exposed communication, waiting, MFU, memory.
--
-- See the kpis analysis for their definitions.
CREATE OR REPLACE MACRO lib.run_kpis(
    runs,
    ranks,
    -- Profiler steps to include; NULL means every step, or the whole trace if it has no steps.
    steps,
    include_last_profiler_step
) AS TABLE
-- Columns:
--   run                        VARCHAR         Run name.
--   rank_count                 BIGINT [count]  Number of ranks.
--   step_count                 BIGINT [count]  Number of distinct steps; NULL for traces without steps.
--   device_name                VARCHAR         Most frequent device model; NULL if not recorded.
--   step_ns                    DOUBLE [ns]     Mean step duration over ranks and steps; for traces without steps, mean duration of the whole trace.
--   utilization_pct            DOUBLE [%]      Share of recorded step time in which a kernel does more than wait for other ranks, as far as its waits are known; NULL without a device.
--   compute_pct                DOUBLE [%]      Share of recorded step time with a computation kernel running; NULL without a device.
--   exposed_communication_pct  DOUBLE [%]      Share of recorded step time in communication (transfer, wait, or unmatched) that is not overlapped by compute.
--   unmatched_pct              DOUBLE [%]      Part of exposed_communication_pct in collectives that are unmatched, or whose end times disagree: transfer or wait, which of the two is unknown.
--   wait_pct                   DOUBLE [%]      Part of exposed_communication_pct spent waiting for other ranks; NULL if no collective is matched across ranks.
--   idle_pct                   DOUBLE [%]      Share of recorded step time with no device activity; NULL without a device.
--   unrecorded_pct             DOUBLE [%]      Share of step time in which the device ran work that is not in the trace; all other shares exclude this time.
--   undecided_pct              DOUBLE [%]      Share of step time that is either idle or unrecorded work; it counts as idle because the trace does not show which of the two it is.
--   launch_bound_pct           DOUBLE [%]      Part of idle_pct before the host has launched the next operation; NULL if no launch is in the trace.
--   launch_unknown_pct         DOUBLE [%]      Part of idle_pct before an operation whose launch is not in the trace.
--   mfu_pct                    DOUBLE [%]      Model FLOPs utilization as in mfu: time at the peak rate as a share of recorded step time, mean over the steps of all ranks; NULL if shapes or peaks are unknown.
--   mfu_peak_tflops            DOUBLE [TFLOP/s]  Peak rate that mfu_pct is relative to, the mean over the data types of the products; NULL: unknown.
--   mfu_covered_pct            DOUBLE [%]      Share of computation kernel time that mfu_pct covers.
--   peak_memory_bytes          BIGINT [bytes]  Highest reserved total of a device, or allocated total if higher; NULL without memory events.
--   peak_memory_pct            DOUBLE [%]      Highest share of a device's memory in use; NULL if no trace records the capacity.
WITH
    _parts AS MATERIALIZED (
        SELECT p.* FROM lib.scoped_steps(runs, ranks, steps, include_last_profiler_step) AS p
    ),
    _summed AS (
        SELECT
            p.run,
            count(DISTINCT p.rank) AS rank_count,
            count(DISTINCT p.step) AS step_count,
            avg(p.step_ns) AS step_ns,
            sum(p.recorded_ns) AS total,
            sum(CASE WHEN d.rank IS NOT NULL THEN p.step_ns END) AS stepped,
            sum(CASE WHEN d.rank IS NOT NULL THEN p.recorded_ns END) AS on_device,
            sum(CASE WHEN d.rank IS NOT NULL THEN p.undecided_ns END) AS undecided,
            sum(p.compute_ns) AS computed,
            sum(p.exposed_transfer_ns + p.exposed_unmatched_ns + p.exposed_wait_ns) AS communicated,
            sum(p.exposed_wait_ns) AS waited,
            sum(p.exposed_unmatched_ns) AS unmatched,
            sum(p.exposed_transfer_ns) AS transferred,
            sum(CASE WHEN d.rank IS NOT NULL THEN p.compute_ns + p.exposed_transfer_ns + p.exposed_unmatched_ns END) AS in_kernels,
            sum(CASE WHEN d.rank IS NOT NULL THEN p.idle_before_ns + p.idle_between_ns + p.idle_after_ns END) AS idled
        FROM _parts AS p
        LEFT JOIN lib.device_ranks(runs, ranks) AS d ON d.run = p.run AND d.rank = p.rank
        GROUP BY p.run
    ),
    _waiting AS (
        SELECT
            i.run,
            sum(CASE WHEN i.waits_for = 'host' THEN i.dur::HUGEINT * len(i.in_steps) ELSE 0 END) AS not_launched,
            sum(CASE WHEN i.waits_for = 'unknown' THEN i.dur::HUGEINT * len(i.in_steps) ELSE 0 END) AS not_told
        FROM lib.idle_parts(runs, ranks, steps, include_last_profiler_step) AS i
        GROUP BY i.run
    ),
    _multiplied AS (
        SELECT
            m.run, sum(m.flops) / nullif(sum(m.peak_ps), 0) AS peak_tflops, sum(m.computation_ns) AS computed, sum(m.covered_ns) AS covered,
            CASE
                WHEN sum(m.peakless_count) > 0 THEN NULL
                WHEN count(m.flops) = 0 AND sum(m.covered_ns) = sum(m.computation_ns) THEN 0
                ELSE sum(m.peak_ps) / 1000
            END AS at_peak
        FROM lib.matrix_work(runs, ranks, steps, include_last_profiler_step, NULL) AS m
        JOIN _parts AS p ON p.run = m.run AND p.rank = m.rank AND p.step IS NOT DISTINCT FROM m.step
        GROUP BY m.run
    ),
    _peaks AS (
        SELECT p.run, p.capacity_bytes, greatest(p.peak_allocated_bytes, p.peak_reserved_bytes) AS peak
        FROM lib.memory_peaks(runs, ranks, steps, false) AS p
        WHERE p.device_type = 1
    ),
    _highest AS (
        SELECT p.run, max(p.peak) AS peak, max(100 * (p.peak / nullif(p.capacity_bytes, 0))) AS share
        FROM _peaks AS p
        GROUP BY p.run
    ),
    _models AS (
        SELECT v.run, v.name, count(*) AS device_count
        FROM lib.device_models(runs, ranks) AS v
        WHERE v.name IS NOT NULL
        GROUP BY v.run, v.name
    ),
    _most AS (
        SELECT m.run, arg_min(m.name, (-m.device_count, m.name)) AS name FROM _models AS m GROUP BY m.run
    )
SELECT
    s.run AS run,
    s.rank_count AS rank_count,
    nullif(s.step_count, 0) AS step_count,
    o.name AS device_name,
    s.step_ns AS step_ns,
    100 * (s.in_kernels / nullif(s.on_device, 0)) AS utilization_pct,
    100 * (s.computed / nullif(s.on_device, 0)) AS compute_pct,
    100 * (s.communicated / nullif(s.total, 0)) AS exposed_communication_pct,
    100 * (s.unmatched / nullif(s.total, 0)) AS unmatched_pct,
    CASE WHEN s.waited > 0 OR s.transferred > 0 OR s.communicated = 0 THEN 100 * (s.waited / nullif(s.total, 0)) END AS wait_pct,
    100 * (s.idled / nullif(s.on_device, 0)) AS idle_pct,
    100 * ((s.stepped - s.on_device) / nullif(s.stepped, 0)) AS unrecorded_pct,
    100 * (s.undecided / nullif(s.stepped, 0)) AS undecided_pct,
    CASE WHEN s.idled = 0 OR w.not_told < s.idled THEN 100 * (coalesce(w.not_launched, 0) / nullif(s.on_device, 0)) END AS launch_bound_pct,
    100 * (coalesce(w.not_told, 0) / nullif(s.on_device, 0)) AS launch_unknown_pct,
    100 * (x.at_peak / nullif(s.on_device, 0)) AS mfu_pct,
    CASE WHEN x.at_peak IS NOT NULL THEN x.peak_tflops END AS mfu_peak_tflops,
    100 * (x.covered / nullif(x.computed, 0)) AS mfu_covered_pct,
    h.peak AS peak_memory_bytes,
    h.share AS peak_memory_pct
FROM _summed AS s
LEFT JOIN _waiting AS w ON w.run = s.run
LEFT JOIN _multiplied AS x ON x.run = s.run
LEFT JOIN _highest AS h ON h.run = s.run
LEFT JOIN _most AS o ON o.run = s.run
