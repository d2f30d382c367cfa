-- Key figures of each run compared with previous runs of the same job: regressions beyond the usual variation.
--
-- A run is compared with earlier runs of the same job, that is, with the same device model, number of ranks and tags.
-- The baseline is the median of the last baseline_runs earlier runs, and the noise is their median absolute deviation
-- (MAD). A figure is a regression if it is worse than the baseline by more than noise_factor times the noise and by
-- more than min_change_pct. min_change_pct is relative to the median or, for shares of the time, in percentage points.
-- Runs are ordered by the time of their first event, or of ingestion if the trace does not record the date. A lasting
-- change stops being a regression once some baseline runs include the change, because the variation of the baseline
-- then grows. With steady noise and the defaults, 3 in 1,000 figures are false alarms (11 in 1,000 with a baseline of
-- only six runs).
--
-- Title: Key figures across runs
-- Shown: kpi, kpi_value, unit, baseline_median, diff_pct, is_regression, job, captured_at
-- Status: stable
-- Since: 0.1
-- Reference: the kpis analysis, applied to all runs in a store
-- Needs: several runs; tags (ingest --tag) to distinguish jobs
-- Materialized: never; a run is compared with earlier runs
-- Report: first 2; of several runs
CREATE OR REPLACE MACRO kpi_trends_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    -- Profiler steps to include; NULL means every step, or the whole trace if it has no steps.
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false,
    -- Tags that must be equal for runs of one job; NULL means all but git_sha.
    same_tags VARCHAR[] := NULL,
    -- Maximum number of earlier runs in the baseline.
    baseline_runs BIGINT := 10,
    -- Minimum number of baseline runs; with fewer, there is no verdict.
    min_runs BIGINT := 6,
    -- Multiple of the noise that a change must exceed to be a regression.
    noise_factor DOUBLE := 6,
    -- Change that a regression must exceed [%].
    min_change_pct DOUBLE := 1
) AS TABLE
-- Columns:
--   kpi                 VARCHAR         Name of the figure, as in the kpis analysis.
--   job                 VARCHAR         Tags shared by the runs; empty if they have none.
--   run                 VARCHAR         Run name.
--   captured_at         VARCHAR         Time of the first event, UTC; time of ingestion if the trace does not record it.
--   git_sha             VARCHAR         Commit that the job ran.
--   unit                VARCHAR         Unit of the figures in this row: ns, % or bytes.
--   kpi_value           DOUBLE [1]      Value of the figure; NULL if unknown.
--   baseline_run_count  BIGINT [count]  Number of earlier runs in the baseline.
--   baseline_median     DOUBLE [1]      Median of the baseline; NULL with fewer than min_runs.
--   diff_pct            DOUBLE [%]      Difference from baseline_median, as a share of baseline_median.
--   tolerance           DOUBLE [1]      Largest difference from baseline_median that counts as neither better nor worse.
--   is_regression       BOOLEAN         Whether the figure is worse by more than tolerance; NULL without a baseline.
WITH
    tagged AS (
        SELECT t.run, string_agg(concat(t.tag, '=', t.tag_value), ', ' ORDER BY t.tag) AS job
        FROM run_tags AS t
        WHERE CASE WHEN same_tags IS NULL THEN t.tag <> 'git_sha' ELSE list_contains(same_tags, t.tag) END
        GROUP BY t.run
    ),
    figures AS (
        SELECT
            k.run, k.device_name, k.rank_count,
            unnest([
                {'position': 1, 'kpi': 'step_ns', 'unit': 'ns', 'worse': 1, 'amount': k.step_ns},
                {'position': 2, 'kpi': 'utilization_pct', 'unit': '%', 'worse': -1, 'amount': k.utilization_pct},
                {'position': 3, 'kpi': 'exposed_communication_pct', 'unit': '%', 'worse': 1, 'amount': k.exposed_communication_pct},
                {'position': 4, 'kpi': 'wait_pct', 'unit': '%', 'worse': 1, 'amount': k.wait_pct},
                {'position': 5, 'kpi': 'idle_pct', 'unit': '%', 'worse': 1, 'amount': k.idle_pct},
                {'position': 6, 'kpi': 'launch_bound_pct', 'unit': '%', 'worse': 1, 'amount': k.launch_bound_pct},
                {'position': 7, 'kpi': 'mfu_pct', 'unit': '%', 'worse': -1, 'amount': k.mfu_pct},
                {'position': 8, 'kpi': 'peak_memory_bytes', 'unit': 'bytes', 'worse': 1, 'amount': k.peak_memory_bytes}
            ]) AS f
        FROM lib.run_kpis(runs, ranks, steps, include_last_profiler_step) AS k
    ),
    known AS (
        SELECT
            v.f.position AS position, v.f.kpi AS kpi, v.f.unit AS unit, v.f.worse AS worse, v.f.amount::DOUBLE AS amount,
            coalesce(t.job, '') AS job, v.device_name, v.rank_count, v.run, r.git_sha,
            CASE WHEN r.captured_at IS NOT NULL THEN r.start_ns END AS start_ns,
            coalesce(r.captured_at, r.ingested_at) AS captured_at
        FROM figures AS v
        JOIN runs AS r ON r.run = v.run
        LEFT JOIN tagged AS t ON t.run = v.run
    ),
    numbered AS (
        SELECT
            k.*,
            row_number() OVER (
                PARTITION BY k.kpi, k.job, k.device_name, k.rank_count
                ORDER BY k.captured_at NULLS FIRST, k.start_ns NULLS FIRST, k.run
            ) AS number
        FROM known AS k
    ),
    beside AS (
        SELECT
            n.*,
            list(n.amount) OVER (
                PARTITION BY n.kpi, n.job, n.device_name, n.rank_count
                ORDER BY n.number
            ) AS all_before
        FROM numbered AS n
    ),
    last_ones AS (
        SELECT
            b.*,
            list_filter(
                b.all_before[greatest(1, b.number - baseline_runs):b.number - 1], lambda x: x IS NOT NULL
            ) AS before
        FROM beside AS b
    ),
    compared AS (
        SELECT
            b.*,
            CASE WHEN len(b.before) >= min_runs THEN list_aggregate(b.before, 'median') END AS middle,
            CASE WHEN len(b.before) >= min_runs THEN list_aggregate(b.before, 'mad') END AS spread
        FROM last_ones AS b
    ),
    limited AS (
        SELECT
            c.*,
            greatest(
                -- For a normal distribution, 1.4826 times the MAD is the standard deviation.
                noise_factor * 1.4826 * c.spread,
                min_change_pct * (CASE WHEN c.unit = '%' THEN 1 ELSE c.middle / 100 END)
            ) AS tolerance
        FROM compared AS c
    )
SELECT
    l.kpi, l.job, l.run, l.captured_at, l.git_sha, l.unit,
    l.amount AS kpi_value,
    len(l.before) AS baseline_run_count,
    l.middle AS baseline_median,
    100 * (l.amount / nullif(l.middle, 0) - 1) AS diff_pct,
    CASE WHEN l.middle IS NOT NULL THEN l.tolerance END AS tolerance,
    l.worse * (l.amount - l.middle) > l.tolerance AS is_regression
FROM limited AS l
ORDER BY l.position, l.job, l.device_name, l.rank_count, l.number
