-- Two sides of a comparison, step against step: what the step takes, its parts, and what changed in them.
--
-- A mean over the typical steps of all ranks, so that parts add up: rows of a part sum to the part, parts to the
-- step, exactly. A step is typical unless it lies further from the median of its side than five robust deviations
-- and 2 %, of four steps or more. Steps are the samples of the noise, all ranks of a step one: they wait for each other.
-- A difference counts where it is beyond chance (99 %; of parts and rows, which are many, 99.9 %) and, of the step,
-- above 0.5 %, of parts and rows above 0.1 % of the step. Where a side has one step chance is not known: then rows above 1 % of the step count, and the step's
-- own verdict is unknown.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib.compared_contents(
    -- Name of a relation with the columns of lib.step_contents: the control.
    control_contents,
    -- The test: a relation with the columns of lib.step_contents.
    test_contents,
    -- Operators and kernels that the test calls otherwise, each as name_in_test=name_in_control; NULL: none.
    renamed
) AS TABLE
-- Columns:
--   level               VARCHAR         step, part or row.
--   part                VARCHAR         As in step_contents; NULL for the step.
--   what                VARCHAR         What both sides are known by; NULL for steps and parts.
--   control_ns          BIGINT [ns]     Mean of the control's steps.
--   test_ns             BIGINT [ns]     Mean of the test's steps.
--   diff_ns             BIGINT [ns]     Test less control.
--   diff_pct            DOUBLE [%]      Likewise, of the control; NULL where that is 0.
--   noise_ns            DOUBLE [ns]     By how much their difference may be off by chance; NULL where a side has one step.
--   is_change           BOOLEAN         The difference is beyond chance and not small.
--   verdict             VARCHAR         slower, faster, longer, shorter (idle, wait, lag), more often, less often, added, removed, unchanged, within noise or unknown.
--   control_count       DOUBLE [count]  Operations in a step of a rank of the control.
--   test_count          DOUBLE [count]  Operations in a step of a rank of the test.
--   same_pct            DOUBLE [%]      Share of its busy time whose operator, shapes and kernel are the same on both sides; NULL where nothing runs.
--   same_work_pct       DOUBLE [%]      Share whose operator and shapes are the same; likewise.
--   paired_pct          DOUBLE [%]      Share whose operator or kernel is the same; likewise.
--   loosest_match       VARCHAR         What partners have in common where least: operator, shapes and kernel; operator and shapes; operator and kernel; operator; kernel; place; kind of work; NULL: none.
--   control_kernel      VARCHAR         Kernel that takes most of it in the control; NULL: none.
--   test_kernel         VARCHAR         Likewise in the test.
--   control_shapes      VARCHAR         Shapes that take most of it in the control; NULL if unknown.
--   test_shapes         VARCHAR         Likewise in the test.
--   place               VARCHAR         nn.Module or annotation that takes most of it; NULL: none.
--   control_step_count  BIGINT [count]  Typical steps of the control.
--   test_step_count     BIGINT [count]  Typical steps of the test.
--   left_out_count      BIGINT [count]  Steps of both sides that are not typical.
WITH
    _paired AS MATERIALIZED (
        FROM lib.paired_contents(control_contents, test_contents, renamed)
    ),
    _lanes AS (
        SELECT p.side, p.rank, p.step, sum(p.self_ns)::BIGINT AS step_ns FROM _paired AS p GROUP BY p.side, p.rank, p.step
    ),
    _steps AS (
        SELECT l.side, l.step, avg(l.step_ns) AS step_ns FROM _lanes AS l GROUP BY l.side, l.step
    ),
    _spread AS (
        SELECT s.side, median(s.step_ns) AS middle, mad(s.step_ns) AS deviation, count(*) AS step_count FROM _steps AS s GROUP BY s.side
    ),
    _typical AS (
        SELECT s.side, s.step
        FROM _steps AS s
        JOIN _spread AS p ON p.side = s.side
        WHERE p.step_count < 4 OR abs(s.step_ns - p.middle) <= greatest(5 * 1.4826 * p.deviation, 0.02 * p.middle)
    ),
    _sizes AS (
        SELECT
            -- A side without steps has no rows below, and divides nothing.
            nullif(count(*) FILTER (l.side = 'control'), 0) AS control_lanes,
            nullif(count(*) FILTER (l.side = 'test'), 0) AS test_lanes,
            nullif(count(DISTINCT l.step) FILTER (l.side = 'control') + count(DISTINCT 1) FILTER (l.side = 'control' AND l.step IS NULL), 0) AS control_steps,
            nullif(count(DISTINCT l.step) FILTER (l.side = 'test') + count(DISTINCT 1) FILTER (l.side = 'test' AND l.step IS NULL), 0) AS test_steps,
            (SELECT count(*) FROM _steps AS s) AS step_count
        FROM _lanes AS l
        JOIN _typical AS t ON t.side = l.side AND t.step IS NOT DISTINCT FROM l.step
    ),
    _kept AS MATERIALIZED (
        SELECT p.*
        FROM _paired AS p
        JOIN _typical AS t ON t.side = p.side AND t.step IS NOT DISTINCT FROM p.step
    ),
    _levels AS (
        SELECT
            grouping(k.part, k.what) AS level_no, k.part, k.what,
            coalesce(sum(k.self_ns) FILTER (k.side = 'control'), 0)::BIGINT AS control_sum,
            coalesce(sum(k.self_ns) FILTER (k.side = 'test'), 0)::BIGINT AS test_sum,
            coalesce(sum(k.op_count) FILTER (k.side = 'control'), 0)::BIGINT AS control_ops,
            coalesce(sum(k.op_count) FILTER (k.side = 'test'), 0)::BIGINT AS test_ops,
            sum(k.self_ns) FILTER (k.part NOT IN ('idle', 'lag'))::BIGINT AS busy_sum,
            coalesce(sum(k.self_ns) FILTER (k.part NOT IN ('idle', 'lag') AND k.pair_level = 1), 0)::BIGINT AS same_sum,
            coalesce(sum(k.self_ns) FILTER (k.part NOT IN ('idle', 'lag') AND k.pair_level <= 2), 0)::BIGINT AS same_work_sum,
            coalesce(sum(k.self_ns) FILTER (k.part NOT IN ('idle', 'lag') AND k.pair_level <= 5), 0)::BIGINT AS paired_sum,
            max(k.pair_level) AS loosest
        FROM _kept AS k
        GROUP BY GROUPING SETS ((k.part, k.what), (k.part), ())
    ),
    -- A step in which a row does not occur is a 0, so that sums over all steps are enough.
    _samples AS (
        SELECT grouping(k.part, k.what) AS level_no, k.part, k.what, k.side, k.step, sum(k.self_ns)::DOUBLE AS sample_ns
        FROM _kept AS k
        GROUP BY GROUPING SETS ((k.part, k.what, k.side, k.step), (k.part, k.side, k.step), (k.side, k.step))
    ),
    _moments AS (
        SELECT
            s.level_no, s.part, s.what,
            coalesce(sum(s.sample_ns) FILTER (s.side = 'control'), 0) AS control_sum,
            coalesce(sum(s.sample_ns * s.sample_ns) FILTER (s.side = 'control'), 0) AS control_squares,
            coalesce(sum(s.sample_ns) FILTER (s.side = 'test'), 0) AS test_sum,
            coalesce(sum(s.sample_ns * s.sample_ns) FILTER (s.side = 'test'), 0) AS test_squares
        FROM _samples AS s
        GROUP BY s.level_no, s.part, s.what
    ),
    -- Variances of the means of a rank's step: n samples, each of so many ranks.
    _variances AS (
        SELECT
            m.level_no, m.part, m.what, z.control_steps, z.test_steps,
            greatest(m.control_squares - m.control_sum * m.control_sum / z.control_steps, 0)
                / nullif(z.control_steps - 1, 0) * z.control_steps / z.control_lanes / z.control_lanes AS control_variance,
            greatest(m.test_squares - m.test_sum * m.test_sum / z.test_steps, 0)
                / nullif(z.test_steps - 1, 0) * z.test_steps / z.test_lanes / z.test_lanes AS test_variance
        FROM _moments AS m
        CROSS JOIN _sizes AS z
    ),
    _noise AS (
        SELECT
            v.level_no, v.part, v.what,
            -- Steps of both sides vary alike, as far as few of them tell; where no step differs from another there is no noise.
            CASE
                WHEN v.control_variance + v.test_variance = 0 THEN 0
                ELSE sqrt(v.control_variance + v.test_variance) * lib.student_t(v.level_no < 3, v.control_steps + v.test_steps - 2)
            END AS noise_ns
        FROM _variances AS v
    ),
    -- What takes most of a row, for its picture.
    _shares AS (
        SELECT k.part, k.what, k.side, k.kernel, k.shapes, k.place, sum(k.self_ns) AS share_ns
        FROM _kept AS k
        GROUP BY ALL
    ),
    _most AS (
        SELECT
            s.part, s.what,
            arg_min({'name': s.kernel}, (-s.share_ns, s.kernel)) FILTER (s.side = 'control') AS control_kernel,
            arg_min({'name': s.kernel}, (-s.share_ns, s.kernel)) FILTER (s.side = 'test') AS test_kernel,
            arg_min({'name': s.shapes}, (-s.share_ns, s.shapes)) FILTER (s.side = 'control') AS control_shapes,
            arg_min({'name': s.shapes}, (-s.share_ns, s.shapes)) FILTER (s.side = 'test') AS test_shapes,
            arg_min({'name': s.place}, (-s.share_ns, s.side = 'control', s.place)) AS place
        FROM _shares AS s
        GROUP BY s.part, s.what
    ),
    -- Means have other divisors on both sides, so they are rounded to add up: each row is the step by which the
    -- rounded running sum grows.
    _cumulated AS (
        SELECT
            l.*, z.*,
            sum(l.control_sum) OVER so_far AS control_running,
            sum(l.test_sum) OVER so_far AS test_running
        FROM _levels AS l
        CROSS JOIN _sizes AS z
        WHERE l.level_no = 0
        WINDOW so_far AS (ORDER BY l.part, l.what ROWS UNBOUNDED PRECEDING)
    ),
    _rounded AS (
        SELECT
            c.part, c.what,
            ((2 * c.control_running + c.control_lanes) // (2 * c.control_lanes)
                - (2 * (c.control_running - c.control_sum) + c.control_lanes) // (2 * c.control_lanes))::BIGINT AS control_ns,
            ((2 * c.test_running + c.test_lanes) // (2 * c.test_lanes)
                - (2 * (c.test_running - c.test_sum) + c.test_lanes) // (2 * c.test_lanes))::BIGINT AS test_ns
        FROM _cumulated AS c
    ),
    _means AS (
        SELECT grouping(r.part, r.what) AS level_no, r.part, r.what, sum(r.control_ns)::BIGINT AS control_ns, sum(r.test_ns)::BIGINT AS test_ns
        FROM _rounded AS r
        GROUP BY GROUPING SETS ((r.part, r.what), (r.part), ())
    ),
    _step AS (
        SELECT m.control_ns AS step_ns FROM _means AS m WHERE m.level_no = 3
    ),
    _judged AS (
        SELECT
            m.level_no, m.part, m.what, m.control_ns, m.test_ns, n.noise_ns, z.*,
            l.control_ops / z.control_lanes AS control_count,
            l.test_ops / z.test_lanes AS test_count,
            l.control_ops, l.test_ops, l.busy_sum, l.same_sum, l.same_work_sum, l.paired_sum, l.loosest,
            abs(m.test_ns - m.control_ns) <= CASE WHEN n.noise_ns IS NULL THEN 0.01 WHEN m.level_no = 3 THEN 0.005 ELSE 0.001 END * t.step_ns AS is_small
        FROM _means AS m
        CROSS JOIN _step AS t
        CROSS JOIN _sizes AS z
        JOIN _noise AS n ON n.level_no = m.level_no AND n.part IS NOT DISTINCT FROM m.part AND n.what IS NOT DISTINCT FROM m.what
        JOIN _levels AS l ON l.level_no = m.level_no AND l.part IS NOT DISTINCT FROM m.part AND l.what IS NOT DISTINCT FROM m.what
    ),
    _weighed AS (
        SELECT
            j.*,
            NOT j.is_small AND (j.noise_ns IS NOT NULL OR j.level_no < 3) AND coalesce(abs(j.test_ns - j.control_ns) > j.noise_ns, true) AS is_change
        FROM _judged AS j
    )
SELECT
    CASE j.level_no WHEN 3 THEN 'step' WHEN 1 THEN 'part' ELSE 'row' END AS level,
    j.part, j.what, j.control_ns, j.test_ns,
    j.test_ns - j.control_ns AS diff_ns,
    100 * ((j.test_ns - j.control_ns) / nullif(j.control_ns, 0)) AS diff_pct,
    j.noise_ns, j.is_change,
    CASE
        WHEN j.level_no = 3 AND j.noise_ns IS NULL AND j.test_ns <> j.control_ns THEN 'unknown'
        WHEN NOT j.is_change THEN CASE WHEN j.is_small THEN 'unchanged' ELSE 'within noise' END
        -- Kinds of work may have partners that stand under their operator.
        WHEN j.level_no = 0 AND j.loosest IS NULL AND j.control_ops = 0 AND j.test_ops > 0 THEN 'added'
        WHEN j.level_no = 0 AND j.loosest IS NULL AND j.test_ops = 0 AND j.control_ops > 0 THEN 'removed'
        WHEN j.level_no = 0 AND j.test_ns > j.control_ns AND j.test_count > 1.02 * j.control_count THEN 'more often'
        WHEN j.level_no = 0 AND j.test_ns < j.control_ns AND j.test_count < 0.98 * j.control_count THEN 'less often'
        WHEN j.part IN ('idle', 'wait', 'lag') THEN CASE WHEN j.test_ns > j.control_ns THEN 'longer' ELSE 'shorter' END
        WHEN j.test_ns > j.control_ns THEN 'slower'
        ELSE 'faster'
    END AS verdict,
    j.control_count,
    j.test_count,
    100 * (j.same_sum / nullif(j.busy_sum, 0)) AS same_pct,
    100 * (j.same_work_sum / nullif(j.busy_sum, 0)) AS same_work_pct,
    100 * (j.paired_sum / nullif(j.busy_sum, 0)) AS paired_pct,
    CASE WHEN j.level_no = 0 AND j.part NOT IN ('idle', 'lag') THEN
        ['operator, shapes and kernel', 'operator and shapes', 'operator and kernel', 'operator', 'kernel', 'place', 'kind of work'][j.loosest]
    END AS loosest_match,
    o.control_kernel.name AS control_kernel,
    o.test_kernel.name AS test_kernel,
    o.control_shapes.name AS control_shapes,
    o.test_shapes.name AS test_shapes,
    o.place.name AS place,
    j.control_steps AS control_step_count,
    j.test_steps AS test_step_count,
    j.step_count - j.control_steps - j.test_steps AS left_out_count
FROM _weighed AS j
LEFT JOIN _most AS o ON j.level_no = 0 AND o.part = j.part AND o.what = j.what
WHERE j.control_steps > 0 AND j.test_steps > 0
