-- Model FLOPs utilisation: what of each step the device would need at its peak for the products of matrices that ran.
--
-- GEMM, convolution and attention count, each at the peak of the type that it computes with (lib.device_peaks), backward
-- passes too; so does what is computed again in the backward pass, which others count as hardware FLOPs only. All other
-- kernels are known to have none, so that they are covered; those of compilers' templates, graphs and other libraries
-- are not. mfu_pct holds for covered_pct of the time of computation kernels: what is not covered can only raise it.
--
-- Status: stable
-- Since: 0.1
-- Reference: msprof-analyze OperatorMFU; PaLM, appendix B
-- Needs: GPU activity with operators, record_shapes, and a device in the list of peaks, or its peak given
CREATE OR REPLACE MACRO mfu_v1(
    -- Runs to include; NULL means every run.
    runs VARCHAR[] := NULL,
    -- Ranks to include; NULL means every rank.
    ranks INTEGER[] := NULL,
    -- Profiler steps to include; NULL means every step, and the whole of traces without steps.
    steps BIGINT[] := NULL,
    -- Whether to include the last profiler step of a run with two or more.
    include_last_profiler_step BOOLEAN := false,
    -- Whether each step is a row of its own; else the steps of a rank together.
    by_step BOOLEAN := true,
    -- Peak of the arithmetic of all types [TFLOP/s], in place of the list; NULL: as listed.
    own_peak_tflops DOUBLE := NULL
) AS TABLE
-- Columns:
--   run              VARCHAR           Run name.
--   rank             INTEGER           Rank of the process.
--   step             BIGINT            Profiler step; NULL for all together, and for the whole of a trace without steps.
--   step_count       BIGINT [count]    Steps.
--   step_ns          BIGINT [ns]       Their time.
--   computation_ns   BIGINT [ns]       Sum of the durations of computation kernels that they launched.
--   matrix_ns        BIGINT [ns]       The part of it in products of matrices whose FLOPs are known.
--   flops            BIGINT [1]        Floating-point operations of these; NULL: unknown.
--   achieved_tflops  DOUBLE [TFLOP/s]  flops in step_ns.
--   peak_ns          DOUBLE [ns]       Time that they would take at the peak; NULL: unknown.
--   matrix_peak_pct  DOUBLE [%]        peak_ns as a share of matrix_ns: the rate of these kernels while they run.
--   mfu_pct          DOUBLE [%]        peak_ns as a share of step_ns.
--   covered_pct      DOUBLE [%]        Share of computation_ns in kernels of which it is known whether, and what, they multiply.
--   reason           VARCHAR           Why most of what is not covered, or all of it, is unknown.
WITH
    windows AS MATERIALIZED (
        SELECT w.run, w.rank, w.step, w.step_ns
        FROM lib.scoped_steps(runs, ranks, steps, include_last_profiler_step) AS w
    ),
    calls AS (
        SELECT
            c.run, c.rank, c.step, c.device_ns, c.is_matrix, c.flops, c.reason,
            c.is_matrix IS FALSE OR coalesce(c.is_matrix AND c.flops IS NOT NULL, false) AS is_covered,
            CASE WHEN c.is_matrix THEN round(c.flops / c.peak_tflops)::BIGINT END AS peak_ps
        FROM lib.modelled_calls(runs, ranks, steps, include_last_profiler_step, own_peak_tflops, NULL) AS c
    ),
    reasons AS (
        SELECT c.run, c.rank, c.step, c.reason, sum(c.device_ns)::BIGINT AS device_ns
        FROM calls AS c
        WHERE NOT c.is_covered OR c.is_matrix AND c.peak_ps IS NULL
        GROUP BY c.run, c.rank, c.step, c.reason
    ),
    summed AS (
        SELECT
            c.run, c.rank, c.step, sum(c.device_ns)::BIGINT AS computation_ns,
            coalesce(sum(c.device_ns) FILTER (c.is_covered), 0)::BIGINT AS covered_ns,
            coalesce(sum(c.device_ns) FILTER (c.is_covered AND c.is_matrix), 0)::BIGINT AS matrix_ns,
            (sum(c.flops) FILTER (c.is_matrix))::BIGINT AS flops,
            sum(c.peak_ps)::BIGINT AS peak_ps,
            count_if(c.is_covered AND c.is_matrix AND c.peak_ps IS NULL) AS peakless_count
        FROM calls AS c
        GROUP BY c.run, c.rank, c.step
    ),
    stepped AS (
        SELECT
            w.run, w.rank, CASE WHEN by_step THEN w.step END AS step, count(*) AS step_count, sum(w.step_ns)::BIGINT AS step_ns,
            sum(s.computation_ns)::BIGINT AS computation_ns, sum(s.covered_ns)::BIGINT AS covered_ns, sum(s.matrix_ns)::BIGINT AS matrix_ns,
            sum(s.flops)::BIGINT AS known_flops, sum(s.peak_ps)::BIGINT AS peak_ps, sum(s.peakless_count)::BIGINT AS peakless_count
        FROM windows AS w
        LEFT JOIN summed AS s ON s.run = w.run AND s.rank = w.rank AND s.step IS NOT DISTINCT FROM w.step
        GROUP BY w.run, w.rank, CASE WHEN by_step THEN w.step END
    ),
    most AS (
        SELECT w.run, w.rank, CASE WHEN by_step THEN w.step END AS step, r.reason, sum(r.device_ns)::BIGINT AS device_ns
        FROM windows AS w
        JOIN reasons AS r ON r.run = w.run AND r.rank = w.rank AND r.step IS NOT DISTINCT FROM w.step
        GROUP BY w.run, w.rank, CASE WHEN by_step THEN w.step END, r.reason
        QUALIFY row_number() OVER (PARTITION BY w.run, w.rank, CASE WHEN by_step THEN w.step END ORDER BY sum(r.device_ns) DESC, r.reason) = 1
    ),
    -- No product of matrices is 0 operations only where all kernels are known.
    counted AS (
        SELECT
            s.*,
            CASE WHEN s.known_flops IS NULL AND s.covered_ns = s.computation_ns THEN 0 ELSE s.known_flops END AS flops
        FROM stepped AS s
    ),
    timed AS (
        SELECT c.*, CASE WHEN c.flops = 0 THEN 0 WHEN c.peakless_count = 0 THEN c.peak_ps END AS full_peak_ps
        FROM counted AS c
    )
SELECT
    t.run,
    t.rank,
    t.step,
    t.step_count,
    t.step_ns,
    t.computation_ns,
    t.matrix_ns,
    t.flops,
    t.flops / nullif(t.step_ns, 0) / 1000 AS achieved_tflops,
    t.full_peak_ps / 1000 AS peak_ns,
    t.full_peak_ps / nullif(t.matrix_ns, 0) / 10 AS matrix_peak_pct,
    t.full_peak_ps / nullif(t.step_ns, 0) / 10 AS mfu_pct,
    100 * (t.covered_ns / nullif(t.computation_ns, 0)) AS covered_pct,
    m.reason
FROM timed AS t
LEFT JOIN most AS m ON m.run = t.run AND m.rank = t.rank AND m.step IS NOT DISTINCT FROM t.step
ORDER BY t.run, t.rank, t.step
