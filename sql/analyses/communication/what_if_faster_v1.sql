-- Predicted step time with a faster kernel or class of kernels, largest saving first.
--
-- Predictions come from a replay of the dependency graph of all ranks, as in `what_if`. A kernel saves nothing while
-- its rank waits for another rank or for its host. In a collective, only the transfer becomes faster, because ranks
-- still wait for each other. Classes are computation, communication and memory; kernels are the eight kernels with the
-- most time over all ranks.
--
-- A wait that compute always overlaps in the capture, such as a wait for a prefetch, is not visible in the trace. If
-- kernels become so fast that such a wait is exposed, they save less than stated.
--
-- The replay covers the factors 0, 0.5 and 0.8. For other factors, the saving is interpolated and is a lower bound,
-- because each further percent saves at most as much as the previous percent.
--
-- Title: Step time with faster kernels
-- Shown: part, part_kind, saved_pct, saved_ns, replayed_step_ns, step_ns, factor, bound
-- Status: stable
-- Since: 0.1
-- Scope: runs; all ranks of a run take part; a single rank is sufficient
-- Reference: none
-- Needs: GPU activity
CREATE OR REPLACE MACRO what_if_faster_v1(
    runs VARCHAR[] := NULL,
    -- Assumed duration of each kernel or class, as a fraction of its recorded duration (0 to 1).
    time_factor DOUBLE := 0.5
) AS TABLE
-- Columns:
--   run               VARCHAR      Run name.
--   part_kind         VARCHAR      class or kernel.
--   part              VARCHAR      Name of the class or kernel.
--   factor            DOUBLE [1]   Assumed duration, as a fraction of the recorded duration.
--   step_ns           BIGINT [ns]  Mean host step time over the ranks, as recorded.
--   replayed_step_ns  BIGINT [ns]  Predicted step time, shortened by the same share as the run.
--   saved_pct         DOUBLE [%]   Share of recorded_ns that would be saved.
--   saved_low_pct     DOUBLE [%]   Lower end of the saving's 95 % interval over the steps, as a share of recorded_ns; NULL for fewer than two steps.
--   saved_high_pct    DOUBLE [%]   Upper end of the saving's 95 % interval, as a share of recorded_ns.
--   bound             VARCHAR      lower: a lower bound of the saving, because the saving is interpolated, the trace lost events, or no host wait is recorded; otherwise estimate.
--   recorded_ns       BIGINT [ns]  Time from the start of the first step to the end of the last device operation, summed over all recordings.
--   replayed_ns       BIGINT [ns]  recorded_ns with the faster kernels.
--   saved_ns          BIGINT [ns]  Predicted saving.
WITH
    wanted AS (
        SELECT least(1.0, greatest(0.0, time_factor)) AS factor
    ),
    lost AS (
        SELECT DISTINCT u.run FROM unrecorded_time AS u WHERE u.kind = 'lost' AND lib.is_requested(runs, u.run)
    ),
    step_means AS (
        SELECT p.run, round(avg(p.step_ns))::BIGINT AS step_ns
        FROM lib.scoped_steps(runs, NULL, NULL, false) AS p
        GROUP BY p.run
    ),
    points AS (
        SELECT
            r.run, r.part_kind, r.part, substr(r.scenario, 3)::DOUBLE AS share, r.recorded_ns, r.recorded_ns - r.replayed_ns AS saved_ns,
            r.low_ns, r.high_ns, r.free_host_count
        FROM replays AS r
        WHERE r.part_kind IN ('class', 'kernel') AND lib.is_requested(runs, r.run)
        UNION ALL
        SELECT DISTINCT
            r.run, r.part_kind, r.part, 1.0, r.recorded_ns, 0, CASE WHEN r.low_ns IS NOT NULL THEN 0 END, CASE WHEN r.low_ns IS NOT NULL THEN 0 END,
            r.free_host_count
        FROM replays AS r
        WHERE r.part_kind IN ('class', 'kernel') AND lib.is_requested(runs, r.run)
    ),
    -- The two replayed factors around the requested factor.
    segments AS (
        SELECT
            p.*, lead(p.share) OVER line AS next_share, lead(p.saved_ns) OVER line AS next_saved_ns, lead(p.low_ns) OVER line AS next_low_ns,
            lead(p.high_ns) OVER line AS next_high_ns
        FROM points AS p
        WINDOW line AS (PARTITION BY p.run, p.part_kind, p.part ORDER BY p.share)
    ),
    interpolated AS (
        SELECT
            s.run, s.part_kind, s.part, w.factor, s.recorded_ns, s.free_host_count, w.factor NOT IN (s.share, s.next_share) AS is_between,
            s.saved_ns + (s.next_saved_ns - s.saved_ns) * ((w.factor - s.share) / (s.next_share - s.share)) AS saved_ns,
            s.low_ns + (s.next_low_ns - s.low_ns) * ((w.factor - s.share) / (s.next_share - s.share)) AS low_ns,
            s.high_ns + (s.next_high_ns - s.high_ns) * ((w.factor - s.share) / (s.next_share - s.share)) AS high_ns
        FROM segments AS s
        JOIN wanted AS w ON w.factor >= s.share AND (w.factor < s.next_share OR (w.factor = 1 AND s.next_share = 1))
    )
SELECT
    i.run, i.part_kind, i.part, i.factor, m.step_ns,
    round(m.step_ns * (1 - i.saved_ns / nullif(i.recorded_ns, 0)))::BIGINT AS replayed_step_ns,
    100::DOUBLE * i.saved_ns / nullif(i.recorded_ns, 0) AS saved_pct,
    100::DOUBLE * i.low_ns / nullif(i.recorded_ns, 0) AS saved_low_pct,
    100::DOUBLE * i.high_ns / nullif(i.recorded_ns, 0) AS saved_high_pct,
    CASE WHEN i.is_between OR i.free_host_count > 0 OR l.run IS NOT NULL THEN 'lower' ELSE 'estimate' END AS bound,
    i.recorded_ns,
    i.recorded_ns - round(i.saved_ns)::BIGINT AS replayed_ns,
    round(i.saved_ns)::BIGINT AS saved_ns
FROM interpolated AS i
LEFT JOIN step_means AS m ON m.run = i.run
LEFT JOIN lost AS l ON l.run = i.run
ORDER BY i.run, i.saved_ns DESC, i.part_kind, i.part
