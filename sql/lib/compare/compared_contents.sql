-- Step-by-step comparison of two sides: step time, its parts, and the changes within them.
--
-- Values are means over all steps of all ranks, so the rows of a part add up exactly to the part, and the parts to
-- the step. Steps are the samples for the noise; all ranks of a step are one sample because they wait for each other.
-- If no rank communicates, each step of each rank is a sample. Both sides are assumed to vary equally (pooled
-- variance); the test of step times uses logarithms.
--
-- A difference counts if it is statistically significant and above 0.5 % of the step time, or 0.1 % for parts and
-- rows. The confidence level is 99 %, and 99.9 % for parts and rows because there are many. A step that is 1.5 times
-- as long also counts if all steps of one side are slower than all steps of the other. With one step on a side, noise
-- is unknown: rows that differ by more than 1 % of the step time count, and the verdict of the step is unknown. If
-- the noise exceeds 2 % of the step time, or 1 % for parts and rows, the verdict on a difference within the noise is
-- unknown, not unchanged.
CREATE OR REPLACE MACRO lib.compared_contents(
    -- Name of a relation with the columns of lib.step_contents: the control.
    control_contents,
    -- Name of a relation with the columns of lib.step_contents: the test.
    test_contents,
    -- Operators and kernels with a different name in the test, each as name_in_test=name_in_control; NULL: none.
    renamed
) AS TABLE
-- Columns:
--   level                 VARCHAR         Level of the row: step, part or row.
--   part                  VARCHAR         Part as in step_contents; NULL for the step.
--   subject               VARCHAR         Name shared by control and test; NULL for the step and its parts.
--   control_ns            BIGINT [ns]     Mean time per step of the control.
--   test_ns               BIGINT [ns]     Mean time per step of the test.
--   diff_ns               BIGINT [ns]     Test minus control.
--   diff_pct              DOUBLE [%]      diff_ns as a share of control_ns; NULL if that is 0.
--   noise_ns              DOUBLE [ns]     Largest difference that chance alone explains; NULL if the control or the test has only one sample.
--   is_change             BOOLEAN         Whether the difference is statistically significant and not small.
--   verdict               VARCHAR         slower, faster, longer, shorter (idle, unrecorded, wait, lag, other), more often, less often, added, removed, slower in some steps, faster in some steps, unchanged, within noise or unknown (too few steps or too much noise).
--   control_count         DOUBLE [count]  Operations per step and rank of the control.
--   test_count            DOUBLE [count]  Operations per step and rank of the test.
--   same_pct              DOUBLE [%]      Share of busy time with the same operator, shapes and kernel in control and test; NULL without busy time.
--   same_work_pct         DOUBLE [%]      Share of busy time with the same operator and shapes in control and test; NULL without busy time.
--   paired_pct            DOUBLE [%]      Share of busy time with the same operator or kernel in control and test; NULL without busy time.
--   weakest_match         VARCHAR         What the weakest pair has in common: operator, shapes and kernel; operator and shapes; operator and kernel; operator; kernel; module or annotation; kind of work; NULL: none.
--   control_kernel        VARCHAR         Kernel with the largest share of the row's time in the control; NULL: none.
--   test_kernel           VARCHAR         Kernel with the largest share of the row's time in the test; NULL: none.
--   control_shapes        VARCHAR         Shapes with the largest share of the row's time in the control; NULL if unknown.
--   test_shapes           VARCHAR         Shapes with the largest share of the row's time in the test; NULL if unknown.
--   module_or_annotation  VARCHAR         nn.Module or annotation with the largest share of the row's time; NULL: none.
--   control_step_count    BIGINT [count]  Number of steps of the control.
--   test_step_count       BIGINT [count]  Number of steps of the test.
--   control_median_ns     DOUBLE [ns]     Median step time of the control; NULL for parts and rows.
--   test_median_ns        DOUBLE [ns]     Median step time of the test; NULL for parts and rows.
--   control_slow_steps    VARCHAR         Steps of the control that are slower than its other steps; NULL if there are none, if control and test have similar slow steps, or if the means differ by about as much as the medians.
--   test_slow_steps       VARCHAR         Steps of the test that are slower than its other steps; NULL if there are none, if control and test have similar slow steps, or if the means differ by about as much as the medians.
WITH
    _paired AS MATERIALIZED (
        FROM lib._paired_contents(control_contents, test_contents, renamed)
    ),
    _lanes AS (
        SELECT p.side, p.rank, p.step, sum(p.self_ns)::BIGINT AS step_ns FROM _paired AS p GROUP BY p.side, p.rank, p.step
    ),
    _steps AS (
        SELECT l.side, l.step, avg(l.step_ns) AS step_ns FROM _lanes AS l GROUP BY l.side, l.step
    ),
    _spread AS (
        FROM lib._slow_steps('_steps')
    ),
    _independence AS (
        SELECT NOT coalesce(bool_or(p.part IN ('transfer', 'unmatched', 'wait')), false) AS is_independent FROM _paired AS p
    ),
    _counts AS (
        SELECT
            -- The count of a side without steps is 0 and must not be a divisor.
            nullif(count(*) FILTER (l.side = 'control'), 0) AS control_lanes,
            nullif(count(*) FILTER (l.side = 'test'), 0) AS test_lanes,
            (SELECT s.step_count FROM _spread AS s WHERE s.side = 'control') AS control_steps,
            (SELECT s.step_count FROM _spread AS s WHERE s.side = 'test') AS test_steps
        FROM _lanes AS l
    ),
    _sizes AS (
        SELECT
            c.*, i.is_independent,
            CASE WHEN i.is_independent THEN c.control_lanes ELSE c.control_steps END AS control_samples,
            CASE WHEN i.is_independent THEN c.test_lanes ELSE c.test_steps END AS test_samples
        FROM _counts AS c
        CROSS JOIN _independence AS i
    ),
    _levels AS (
        SELECT
            grouping(k.part, k.subject) AS level_no, k.part, k.subject,
            coalesce(sum(k.self_ns) FILTER (k.side = 'control'), 0)::BIGINT AS control_sum,
            coalesce(sum(k.self_ns) FILTER (k.side = 'test'), 0)::BIGINT AS test_sum,
            coalesce(sum(k.op_count) FILTER (k.side = 'control'), 0)::BIGINT AS control_ops,
            coalesce(sum(k.op_count) FILTER (k.side = 'test'), 0)::BIGINT AS test_ops,
            sum(k.self_ns) FILTER (k.part NOT IN ('idle', 'unrecorded', 'lag', 'other'))::BIGINT AS busy_sum,
            coalesce(sum(k.self_ns) FILTER (k.part NOT IN ('idle', 'unrecorded', 'lag', 'other') AND k.pair_level = 1), 0)::BIGINT AS same_sum,
            coalesce(sum(k.self_ns) FILTER (k.part NOT IN ('idle', 'unrecorded', 'lag', 'other') AND k.pair_level <= 2), 0)::BIGINT AS same_work_sum,
            coalesce(sum(k.self_ns) FILTER (k.part NOT IN ('idle', 'unrecorded', 'lag', 'other') AND k.pair_level <= 5), 0)::BIGINT AS paired_sum,
            max(k.pair_level) AS loosest
        FROM _paired AS k
        GROUP BY GROUPING SETS ((k.part, k.subject), (k.part), ())
    ),
    -- A step that lacks a part or subject contributes 0 to the sums, so rows of zeros are not needed.
    _samples AS (
        SELECT
            grouping(k.part, k.subject) AS level_no, k.part, k.subject, k.side, k.step,
            CASE WHEN z.is_independent THEN k.rank END AS sample_rank, sum(k.self_ns)::BIGINT AS sample_ns
        FROM _paired AS k
        CROSS JOIN _sizes AS z
        GROUP BY GROUPING SETS ((k.part, k.subject, k.side, k.step, sample_rank), (k.part, k.side, k.step, sample_rank), (k.side, k.step, sample_rank))
    ),
    _moments AS (
        SELECT
            s.level_no, s.part, s.subject,
            coalesce(sum(s.sample_ns) FILTER (s.side = 'control'), 0) AS control_sum,
            coalesce(sum(s.sample_ns::HUGEINT * s.sample_ns) FILTER (s.side = 'control'), 0) AS control_squares,
            coalesce(sum(s.sample_ns) FILTER (s.side = 'test'), 0) AS test_sum,
            coalesce(sum(s.sample_ns::HUGEINT * s.sample_ns) FILTER (s.side = 'test'), 0) AS test_squares
        FROM _samples AS s
        GROUP BY s.level_no, s.part, s.subject
    ),
    -- Squared deviations from the mean rank step, for n samples of several ranks each. All sums are sums of integers,
    -- so they are exact in any order.
    _squares AS (
        SELECT
            m.level_no, m.part, m.subject, z.control_samples, z.test_samples,
            (m.control_squares * z.control_samples - m.control_sum * m.control_sum)::DOUBLE / z.control_samples
                * (z.control_samples / z.control_lanes) * (z.control_samples / z.control_lanes) AS control_squares,
            (m.test_squares * z.test_samples - m.test_sum * m.test_sum)::DOUBLE / z.test_samples
                * (z.test_samples / z.test_lanes) * (z.test_samples / z.test_lanes) AS test_squares
        FROM _moments AS m
        CROSS JOIN _sizes AS z
    ),
    _row_noise AS (
        SELECT
            q.level_no, q.part, q.subject,
            CASE WHEN least(q.control_samples, q.test_samples) > 1 THEN
                sqrt((q.control_squares + q.test_squares) / (q.control_samples + q.test_samples - 2) * (1 / q.control_samples + 1 / q.test_samples))
                    * lib.student_t(true, q.control_samples + q.test_samples - 2)
            END AS noise_ns
        FROM _squares AS q
        WHERE q.level_no < 3
    ),
    -- Logarithms of step times, because the variation is proportional to the step time, as integers in units of
    -- 1e-12.
    _log_samples AS (
        SELECT s.side, round(1e12 * ln(greatest(s.sample_ns, 1)))::HUGEINT AS size FROM _samples AS s WHERE s.level_no = 3
    ),
    _log_sums AS (
        SELECT
            count(*) FILTER (s.side = 'control') AS control_samples,
            count(*) FILTER (s.side = 'test') AS test_samples,
            sum(s.size) FILTER (s.side = 'control') AS control_sum,
            sum(s.size) FILTER (s.side = 'test') AS test_sum,
            sum(s.size * s.size) FILTER (s.side = 'control') AS control_squares,
            sum(s.size * s.size) FILTER (s.side = 'test') AS test_squares
        FROM _log_samples AS s
    ),
    _logs AS (
        SELECT
            l.control_samples, l.test_samples,
            (l.test_sum / l.test_samples - l.control_sum / l.control_samples) / 1e12 AS log_ratio,
            (l.control_squares * l.control_samples - l.control_sum * l.control_sum)::DOUBLE / l.control_samples / 1e24 AS control_squares,
            (l.test_squares * l.test_samples - l.test_sum * l.test_sum)::DOUBLE / l.test_samples / 1e24 AS test_squares
        FROM _log_sums AS l
    ),
    _step_noise AS (
        SELECT
            l.log_ratio,
            CASE WHEN least(l.control_samples, l.test_samples) > 1 THEN
                sqrt(
                    (l.control_squares + l.test_squares) / (l.control_samples + l.test_samples - 2)
                    * (1 / l.control_samples + 1 / l.test_samples)
                ) * lib.student_t(false, l.control_samples + l.test_samples - 2)
            END AS log_noise
        FROM _logs AS l
    ),
    -- The result shows the kernel, shapes and nn.Module or annotation with the largest share of each row.
    _shares AS (
        SELECT k.part, k.subject, k.side, k.kernel, k.shapes, k.module_or_annotation, sum(k.self_ns) AS share_ns
        FROM _paired AS k
        GROUP BY ALL
    ),
    _most AS (
        SELECT
            s.part, s.subject,
            arg_min({'name': s.kernel}, (-s.share_ns, s.kernel)) FILTER (s.side = 'control') AS control_kernel,
            arg_min({'name': s.kernel}, (-s.share_ns, s.kernel)) FILTER (s.side = 'test') AS test_kernel,
            arg_min({'name': s.shapes}, (-s.share_ns, s.shapes)) FILTER (s.side = 'control') AS control_shapes,
            arg_min({'name': s.shapes}, (-s.share_ns, s.shapes)) FILTER (s.side = 'test') AS test_shapes,
            arg_min({'name': s.module_or_annotation}, (-s.share_ns, s.side = 'control', s.module_or_annotation)) AS module_or_annotation
        FROM _shares AS s
        GROUP BY s.part, s.subject
    ),
    -- The means of the two sides have different divisors. To make rounded values add up, each row is the increment of
    -- the rounded running sum.
    _cumulated AS (
        SELECT
            l.*, z.*,
            sum(l.control_sum) OVER so_far AS control_running,
            sum(l.test_sum) OVER so_far AS test_running
        FROM _levels AS l
        CROSS JOIN _sizes AS z
        WHERE l.level_no = 0
        WINDOW so_far AS (ORDER BY l.part, l.subject ROWS UNBOUNDED PRECEDING)
    ),
    _rounded AS (
        SELECT
            c.part, c.subject,
            ((2 * c.control_running + c.control_lanes) // (2 * c.control_lanes)
                - (2 * (c.control_running - c.control_sum) + c.control_lanes) // (2 * c.control_lanes))::BIGINT AS control_ns,
            ((2 * c.test_running + c.test_lanes) // (2 * c.test_lanes)
                - (2 * (c.test_running - c.test_sum) + c.test_lanes) // (2 * c.test_lanes))::BIGINT AS test_ns
        FROM _cumulated AS c
    ),
    _means AS (
        SELECT grouping(r.part, r.subject) AS level_no, r.part, r.subject, sum(r.control_ns)::BIGINT AS control_ns, sum(r.test_ns)::BIGINT AS test_ns
        FROM _rounded AS r
        GROUP BY GROUPING SETS ((r.part, r.subject), (r.part), ())
    ),
    _step AS (
        SELECT m.control_ns AS step_ns FROM _means AS m WHERE m.level_no = 3
    ),
    -- Distribution of the steps, reported if the difference of the means differs from the difference of the medians.
    _distribution AS (
        SELECT
            c.median_ns AS control_median_ns, t.median_ns AS test_median_ns,
            c.slow_text AS control_slow_steps, t.slow_text AS test_slow_steps,
            c.most_ns < t.least_ns OR t.most_ns < c.least_ns AS is_separated,
            abs((m.test_ns - m.control_ns) - (t.median_ns - c.median_ns)) > 0.01 * m.control_ns
            AND NOT coalesce(
                abs(c.slow_share - t.slow_share) < 0.999 / least(c.step_count, t.step_count) AND abs(ln(c.slow_ratio / t.slow_ratio)) < 0.05, false
            ) AS is_told
        FROM _spread AS c
        JOIN _spread AS t ON c.side = 'control' AND t.side = 'test'
        JOIN _means AS m ON m.level_no = 3
    ),
    _judged AS (
        SELECT
            m.level_no, m.part, m.subject, m.control_ns, m.test_ns, z.*, t.step_ns, s.log_ratio, s.log_noise, d.is_separated,
            CASE
                WHEN m.level_no < 3 THEN n.noise_ns
                WHEN s.log_noise IS NOT NULL THEN least(m.control_ns, m.test_ns) * (exp(least(s.log_noise, 3)) - 1)
            END AS noise_ns,
            CASE WHEN m.level_no = 3 THEN d.control_median_ns END AS control_median_ns,
            CASE WHEN m.level_no = 3 THEN d.test_median_ns END AS test_median_ns,
            CASE WHEN m.level_no = 3 AND d.is_told THEN d.control_slow_steps END AS control_slow_steps,
            CASE WHEN m.level_no = 3 AND d.is_told THEN d.test_slow_steps END AS test_slow_steps,
            l.control_ops / z.control_lanes AS control_count,
            l.test_ops / z.test_lanes AS test_count,
            l.control_ops, l.test_ops, l.busy_sum, l.same_sum, l.same_work_sum, l.paired_sum, l.loosest
        FROM _means AS m
        CROSS JOIN _step AS t
        CROSS JOIN _sizes AS z
        CROSS JOIN _step_noise AS s
        CROSS JOIN _distribution AS d
        LEFT JOIN _row_noise AS n ON n.level_no = m.level_no AND n.part = m.part AND n.subject IS NOT DISTINCT FROM m.subject
        JOIN _levels AS l ON l.level_no = m.level_no AND l.part IS NOT DISTINCT FROM m.part AND l.subject IS NOT DISTINCT FROM m.subject
    ),
    _sized AS (
        SELECT
            j.*,
            abs(j.test_ns - j.control_ns) <= CASE WHEN j.level_no = 3 THEN 0.005 WHEN j.noise_ns IS NULL THEN 0.01 ELSE 0.001 END * j.step_ns AS is_small,
            -- If the noise exceeds this limit, the verdict on a difference within the noise is unknown. 1 ns is rounding.
            coalesce(j.noise_ns > CASE WHEN j.level_no = 3 THEN 0.02 ELSE 0.01 END * j.step_ns, true) AND abs(j.test_ns - j.control_ns) > 1 AS is_unknown
        FROM _judged AS j
    ),
    _weighed AS (
        SELECT
            s.*,
            NOT s.is_small
            AND CASE
                WHEN s.level_no < 3 THEN coalesce(abs(s.test_ns - s.control_ns) > s.noise_ns, true)
                WHEN s.log_noise IS NULL THEN false
                WHEN s.is_separated AND greatest(s.test_ns / s.control_ns, s.control_ns / s.test_ns) >= 1.5 THEN true
                ELSE abs(s.log_ratio) > s.log_noise AND (s.log_ratio > 0) = (s.test_ns > s.control_ns)
            END AS is_change
        FROM _sized AS s
    )
SELECT
    CASE j.level_no WHEN 3 THEN 'step' WHEN 1 THEN 'part' ELSE 'row' END AS level,
    j.part, j.subject, j.control_ns, j.test_ns,
    j.test_ns - j.control_ns AS diff_ns,
    100 * ((j.test_ns - j.control_ns) / nullif(j.control_ns, 0)) AS diff_pct,
    j.noise_ns, j.is_change,
    CASE
        WHEN NOT j.is_change AND NOT j.is_small AND j.test_ns > j.control_ns AND j.test_slow_steps IS NOT NULL THEN 'slower in some steps'
        WHEN NOT j.is_change AND NOT j.is_small AND j.test_ns < j.control_ns AND j.control_slow_steps IS NOT NULL THEN 'faster in some steps'
        WHEN NOT j.is_change AND j.is_unknown THEN 'unknown'
        WHEN NOT j.is_change THEN CASE WHEN j.is_small THEN 'unchanged' ELSE 'within noise' END
        -- Kinds of work may be paired with rows under their operator. A collective is counted in transfer or, if it
        -- only waited, in wait.
        WHEN j.part IN ('idle', 'unrecorded', 'wait', 'lag', 'other') THEN CASE WHEN j.test_ns > j.control_ns THEN 'longer' ELSE 'shorter' END
        WHEN j.level_no = 0 AND j.loosest IS NULL AND j.control_ops = 0 AND j.test_ops > 0 THEN 'added'
        WHEN j.level_no = 0 AND j.loosest IS NULL AND j.test_ops = 0 AND j.control_ops > 0 THEN 'removed'
        WHEN j.level_no = 0 AND j.part NOT IN ('transfer', 'unmatched') AND j.test_ns > j.control_ns AND j.test_count > 1.02 * j.control_count THEN 'more often'
        WHEN j.level_no = 0 AND j.part NOT IN ('transfer', 'unmatched') AND j.test_ns < j.control_ns AND j.test_count < 0.98 * j.control_count THEN 'less often'
        WHEN j.test_ns > j.control_ns THEN 'slower'
        ELSE 'faster'
    END AS verdict,
    j.control_count,
    j.test_count,
    100 * (j.same_sum / nullif(j.busy_sum, 0)) AS same_pct,
    100 * (j.same_work_sum / nullif(j.busy_sum, 0)) AS same_work_pct,
    100 * (j.paired_sum / nullif(j.busy_sum, 0)) AS paired_pct,
    CASE WHEN j.level_no = 0 AND j.part NOT IN ('idle', 'unrecorded', 'lag', 'other') THEN
        ['operator, shapes and kernel', 'operator and shapes', 'operator and kernel', 'operator', 'kernel', 'module or annotation', 'kind of work'][j.loosest]
    END AS weakest_match,
    o.control_kernel.name AS control_kernel,
    o.test_kernel.name AS test_kernel,
    o.control_shapes.name AS control_shapes,
    o.test_shapes.name AS test_shapes,
    o.module_or_annotation.name AS module_or_annotation,
    j.control_steps AS control_step_count,
    j.test_steps AS test_step_count,
    j.control_median_ns,
    j.test_median_ns,
    j.control_slow_steps,
    j.test_slow_steps
FROM _weighed AS j
LEFT JOIN _most AS o ON j.level_no = 0 AND o.part = j.part AND o.subject = j.subject
WHERE j.control_steps > 0 AND j.test_steps > 0
