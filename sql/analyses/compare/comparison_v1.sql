-- What changed between two runs: the step, where its difference went, and which operators it is.
--
-- The first of the runs is the control, the second the test; a run may stand against itself, other ranks or steps of
-- it. Times are means over all steps of all ranks of a side. The parts sum to the step, and the rows of a part
-- to the part, on both sides and so in the difference, exactly; step_contents says what is in them. Names are paired across
-- renamings, from equal operator, shapes and kernel down to the same kind of work (weakest_match). Steps are the samples of the
-- noise; where no rank communicates, each step of each rank is one. A difference counts if it is beyond chance (99 %; of parts and
-- rows, which are many, 99.9 %) and not small (0.5 % of the step, of parts and rows 0.1 %). Where the means of two sides differ by
-- more or less than their medians, control_slow_steps and test_slow_steps say which steps do that. A step 1.5 times as long counts
-- with two steps a side if all steps of one are slower than all of the other. If a side has one step, noise is unknown: rows above
-- 1 % of the step count, and the step's verdict is unknown. It is unknown, too, where the noise is too large to see 2 % of the step.
--
-- Title: What changed between two runs
-- Status: stable
-- Since: 0.1
-- Reference: TraceLens trace diff, Holistic Trace Analysis TraceDiff, with parts that add up and noise
-- Needs: two runs in the store, or one and different ranks or steps; shapes need record_shapes=True
CREATE OR REPLACE MACRO comparison_v1(
    -- Control and test, or one run for both; NULL means the first two runs of the store by name.
    runs VARCHAR[] := NULL,
    -- Ranks of the control; NULL means every rank.
    ranks INTEGER[] := NULL,
    -- Profiler steps of the control; NULL means every step, or the whole trace if it has no steps.
    steps BIGINT[] := NULL,
    -- Whether to include the last profiler step of a run with two or more.
    include_last_profiler_step BOOLEAN := false,
    -- Ranks of the test; NULL means the same as of the control.
    test_ranks INTEGER[] := NULL,
    -- Profiler steps of the test; NULL means the same as of the control.
    test_steps BIGINT[] := NULL,
    -- Operators and kernels with another name in the test, each as name_in_test=name_in_control; NULL: none.
    renamed VARCHAR[] := NULL
) AS TABLE
-- Columns:
--   control_run           VARCHAR         Run of the control.
--   test_run              VARCHAR         Run of the test.
--   level                 VARCHAR         step, part or row.
--   part                  VARCHAR         As in step_contents; NULL for the step.
--   subject               VARCHAR         What both sides are known by; NULL for steps and parts.
--   control_ns            BIGINT [ns]     Mean of the control's steps.
--   test_ns               BIGINT [ns]     Mean of the test's steps.
--   diff_ns               BIGINT [ns]     Test minus control.
--   diff_pct              DOUBLE [%]      Likewise, as a share of the control; NULL where that is 0.
--   noise_ns              DOUBLE [ns]     By how much their difference may be off by chance; NULL where a side has one step.
--   is_change             BOOLEAN         The difference is beyond chance and not small.
--   verdict               VARCHAR         slower, faster, longer, shorter (idle, unrecorded, wait, lag, other), more often, less often, added, removed, slower in some steps, faster in some steps, unchanged, within noise or unknown (too few steps or too much noise to tell).
--   control_count         DOUBLE [count]  Operations in a step of a rank of the control.
--   test_count            DOUBLE [count]  Operations in a step of a rank of the test.
--   same_pct              DOUBLE [%]      Share of its busy time whose operator, shapes and kernel are the same on both sides; NULL where nothing runs.
--   same_work_pct         DOUBLE [%]      Share of it whose operator and shapes are the same; likewise.
--   paired_pct            DOUBLE [%]      Share of it whose operator or kernel is the same; likewise.
--   weakest_match         VARCHAR         What partners have in common where least: operator, shapes and kernel; operator and shapes; operator and kernel; operator; kernel; module or annotation; kind of work; NULL: none.
--   control_kernel        VARCHAR         Kernel that takes most of it in the control; NULL: none.
--   test_kernel           VARCHAR         Likewise in the test.
--   control_shapes        VARCHAR         Shapes that take most of it in the control; NULL if unknown.
--   test_shapes           VARCHAR         Likewise in the test.
--   module_or_annotation  VARCHAR         nn.Module or annotation that takes most of it; NULL: none.
--   control_step_count    BIGINT [count]  Steps of the control.
--   test_step_count       BIGINT [count]  Steps of the test.
--   control_median_ns     DOUBLE [ns]     Median of the control's steps; NULL for parts and rows.
--   test_median_ns        DOUBLE [ns]     Median of the test's steps; likewise.
--   control_slow_steps    VARCHAR         Steps of the control that take longer than its others, in words; NULL: none, or as in the test, or mean and median differ alike.
--   test_slow_steps       VARCHAR         Likewise of the test.
SELECT p.control_run, p.test_run, c.*
FROM lib.run_comparison(runs, ranks, steps, include_last_profiler_step, test_ranks, test_steps, renamed) AS c
CROSS JOIN lib.compared_runs(runs) AS p
ORDER BY list_position(['step', 'part', 'row'], c.level), abs(c.diff_ns) DESC, c.part, c.subject
