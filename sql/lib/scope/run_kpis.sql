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
-- Columns: those of kpis_v1.
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
        WHERE p.device_type <> 0
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
