-- What each step's time went to, by part, operator, shapes and kernel: what two runs are compared by.
--
-- Every nanosecond of a step is in one row. What runs at once counts in this order: computation, transfer, wait,
-- copies; within one of these the operation that started first has the time, so that time is self time of the
-- device. Idle time stands with the operator that ends it. The device works behind its host: a step has all operations that
-- it launched, whenever they run, and idles from the start of the host's step, or the end of the device's step before, to the end of the
-- host's step or of its last operation. What runs meanwhile and was launched in no step, or has no launch in the trace, belongs to no
-- step: the part other. By how much all of this is longer or shorter than the host's step is the part lag, which may be
-- negative. step_accounting answers another question: what runs between the start and the end of the host's step, whichever
-- step launched that. Names are without what changes from capture to capture. A rank without device activity is told by its
-- host: the self time of operators on the thread of its steps.
--
-- Title: Contents of each step
-- Status: stable
-- Since: 0.1
-- Reference: TraceLens gpu_timeline and diff reports, with every nanosecond in one row
-- Needs: nothing; steps need the profiler's schedule, shapes need record_shapes=True
CREATE OR REPLACE MACRO step_contents_v1(
    -- Runs to include; NULL means every run.
    runs VARCHAR[] := NULL,
    -- Ranks to include; NULL means every rank.
    ranks INTEGER[] := NULL,
    -- Profiler steps to include; NULL means every step, or the whole trace if it has no steps.
    steps BIGINT[] := NULL,
    -- Whether to include the last profiler step of a run with two or more.
    include_last_profiler_step BOOLEAN := false
) AS TABLE
-- Columns:
--   run                   VARCHAR         Run name.
--   rank                  INTEGER         Rank of the process.
--   step                  BIGINT          Profiler step; NULL if the trace has no steps and the row covers all of it.
--   part                  VARCHAR         compute, transfer, wait, memory, other (of no step), unrecorded, idle, host or lag.
--   waits_for             VARCHAR         Of idle time: host (not launched yet), device (launched, not started) or unknown; else NULL.
--   operator              VARCHAR         Operator that launched it, of communication the collective, of idle time what ends it, of other [no launch] or [outside of steps]; NULL: none.
--   shapes                VARCHAR         Input shapes as JSON; of communication elements and their type; NULL if unknown.
--   kernel                VARCHAR         Short name of the kernel; NULL for idle and host time.
--   root                  VARCHAR         Outermost operator around the launch; NULL: none.
--   module_or_annotation  VARCHAR         nn.Module around the launch, else user annotation; NULL: none.
--   category              VARCHAR         Kind of work, as in operation_categories; NULL for idle time.
--   phase                 VARCHAR         forward, backward or optimizer; NULL for idle time.
--   self_ns               BIGINT [ns]     Its share of the step: rows of a step sum to its duration on the host.
--   dur_ns                BIGINT [ns]     Its duration, hidden or not; 0 for idle time.
--   op_count              BIGINT [count]  Operations that started.
SELECT c.*
FROM lib.step_contents(runs, ranks, steps, include_last_profiler_step) AS c
ORDER BY ALL
