-- What changed between two runs: the step time, which parts of the step, and which operators.
--
-- The first run is the control, the second the test. Different ranks or steps of the same run can also be compared.
-- Times are means over all steps and ranks of the control or the test. The parts sum exactly to the step, and the rows
-- of a part sum exactly to the part, for the control, the test and the difference. The step_contents analysis defines
-- parts and rows. Renamed operators and kernels are paired by what they have in common, from the same operator, shapes
-- and kernel down to the same kind of work (weakest_match).
--
-- Steps are the samples for the noise; if no rank communicates, each step of each rank is a sample. A difference
-- counts as a change if it is statistically significant and above 0.5 % of the step time, or 0.1 % for parts and rows.
-- The confidence level is 99 %, and 99.9 % for parts and rows because there are many. If slow steps make the means
-- differ by more or less than the medians do, control_slow_steps and test_slow_steps list the slow steps. With two
-- steps per run, a step time that is 1.5 times as long also counts as a change if every step of one run is slower than
-- every step of the other. If a run has only one step, noise is unknown: rows that differ by more than 1 % of the step
-- time count as changes, and the verdict on the step is unknown. The verdict is also unknown if the noise is too large
-- to detect a change of 2 % of the step time.
--
-- Title: What changed between two runs
-- Shown: part, subject, diff_ns, diff_pct, verdict, control_ns, test_ns, noise_ns, control_count, test_count
-- Also: diff, regression, what changed
-- Status: stable
-- Since: 0.1
-- Reference: TraceLens trace diff, Holistic Trace Analysis TraceDiff, with parts that add up and noise
-- Needs: two runs in the store, or different ranks or steps of one run; shapes need record_shapes=True
-- Report: first 1
CREATE OR REPLACE MACRO comparison_v1(
    -- Control and test, in this order, or one run for both; NULL means the first two runs of the store by name.
    runs VARCHAR[] := NULL,
    -- Ranks of the control; NULL means every rank.
    ranks INTEGER[] := NULL,
    -- Profiler steps of the control; NULL means every step, or the whole trace if it has no steps.
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false,
    -- Ranks of the test; NULL means the ranks of the control.
    test_ranks INTEGER[] := NULL,
    -- Profiler steps of the test; NULL means the steps of the control.
    test_steps BIGINT[] := NULL,
    -- Operators and kernels with a different name in the test, each as name_in_test=name_in_control; NULL: none.
    renamed VARCHAR[] := NULL
) AS TABLE
-- Columns:
--   control_run           VARCHAR         Run of the control.
--   test_run              VARCHAR         Run of the test.
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
SELECT p.control_run, p.test_run, c.*
FROM lib.run_comparison(runs, ranks, steps, include_last_profiler_step, test_ranks, test_steps, renamed) AS c
CROSS JOIN lib.compared_runs(runs) AS p
ORDER BY list_position(['step', 'part', 'row'], c.level), abs(c.diff_ns) DESC, c.part, c.subject
