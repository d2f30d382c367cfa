-- Step time by part, operator, shapes and kernel, most time first: the rows that the comparison analysis compares.
--
-- Every nanosecond of a step is in exactly one row. If different kinds of activity overlap, the time counts as
-- computation, transfer, unmatched communication, wait or copies, in this order of precedence. Among concurrent
-- operations of the same kind, the operation that started first gets the time (device self time). Idle time is attributed to the operator that ends
-- it. The device runs behind the host, so a step contains all operations that it launched, whenever they run. Idle
-- time extends from the start of the host step or the end of the previous step on the device, whichever is later, to
-- the end of the host step or of the last operation, whichever is later.
--
-- Operations launched outside steps, or without a launch in the trace, form the part `other`. The difference between
-- the total and the duration of the host step is the part `lag`, which may be negative. The step_accounting analysis
-- differs: it covers the activity between the start and end of the host step, regardless of the step that launched it.
-- Names omit fragments that change from capture to capture, such as addresses and hashes. For a rank without device
-- activity, the rows contain host time: the self time of operators on the thread that runs the steps.
--
-- Title: Contents of each step
-- Shown: rank, step, part, self_ns, op_count, operator, kernel, phase, waits_for, shapes, module_or_annotation, category, root
-- Status: stable
-- Since: 0.1
-- Reference: TraceLens gpu_timeline and diff reports, with every nanosecond in one row
-- Needs: nothing; steps need the profiler's schedule, shapes need record_shapes=True
CREATE OR REPLACE MACRO step_contents_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    -- Profiler steps to include; NULL means every step, or the whole trace if it has no steps.
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false
) AS TABLE
-- Columns:
--   run                   VARCHAR         Run name.
--   rank                  INTEGER         Rank of the process.
--   step                  BIGINT          Profiler step; NULL if the trace has no steps and the row covers all of it.
--   part                  VARCHAR         Part of the step: compute, transfer, unmatched (communication), wait, memory, other (launched outside steps), unrecorded, idle, host or lag.
--   waits_for             VARCHAR         For idle time: host (not launched yet), device (launched, not started) or unknown; otherwise NULL.
--   operator              VARCHAR         Launching operator; for communication, the collective; for idle time, the operator that ends it; [no launch] or [outside of steps] for the part other; NULL: none.
--   shapes                VARCHAR         Input shapes as JSON; for communication, number and type of elements; NULL if unknown.
--   kernel                VARCHAR         Short kernel name; NULL for idle, unrecorded and host time.
--   root                  VARCHAR         Outermost operator that encloses the launch; NULL: none.
--   module_or_annotation  VARCHAR         nn.Module that encloses the launch, otherwise the user annotation; NULL: none.
--   category              VARCHAR         Kind of work, as in operation_categories; NULL for idle time.
--   phase                 VARCHAR         Training phase: forward, backward or optimizer; NULL for idle time.
--   self_ns               BIGINT [ns]     Step time in this row; the rows of a step sum to its duration on the host.
--   dur_ns                BIGINT [ns]     Total duration, overlapped or not; 0 for idle time.
--   op_count              BIGINT [count]  Number of operations that started.
SELECT c.*
FROM lib.step_contents(runs, ranks, steps, include_last_profiler_step) AS c
ORDER BY
    c.run, c.self_ns DESC, c.rank, c.step, c.part, c.waits_for, c.operator, c.shapes, c.kernel, c.root, c.module_or_annotation,
    c.category, c.phase, c.dur_ns, c.op_count
