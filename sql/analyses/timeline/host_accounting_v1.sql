-- Breakdown of each step into what the host does: load data, wait for a device, communicate, compute, update, or else.
--
-- The seven parts sum exactly to the step. They are those of the thread that runs the steps; in a trace without steps,
-- of the thread with the most time in operators. Each moment counts toward the first part that applies, in the order of
-- the columns; gloo in the background counts as communication only while this thread runs no operator. For a job without
-- a device this is where a step goes. Next to a device, it shows what the host does meanwhile (`step_accounting` has the
-- device). Overlapping steps share the time of the later one.
-- The profiler records neither the threads inside an operator (OpenMP) nor the processes of a data loader, so whether
-- they are busy, or too many or too few, is unknown.
--
-- Title: Where a step goes on the host
-- Shown: rank, step, step_ns, forward_pct, backward_pct, data_loading_pct, communication_pct, other_pct, optimizer_pct, synchronization_pct
-- Also: cpu step, host step, cpu time, forward, backward, no gpu, host time, cpu
-- Status: stable
-- Since: 0.1
-- Reference: TensorBoard profiler plugin, step time breakdown, with the phases of training
-- Needs: host operators; steps need the profiler's schedule, and lines of other time need with_stack
-- Chart:
--   mark = "stack"
--   title = "Where a step goes on the host"
--   notes = [
--     "Mean of the host's steps of each rank, on the thread that runs the steps. Outside operators: such as in Python",
--     "code, or while sleeping.",
--   ]
--   mean = "step"
--   legend = "Part"
--   whole = "the step"
--   parts.data_loading_ns = "data loading"
--   parts.synchronization_ns = ["synchronization", "wait"]
--   parts.communication_ns = "communication"
--   parts.backward_ns = "backward"
--   parts.optimizer_ns = "optimizer"
--   parts.forward_ns = ["forward and other operators", "forward"]
--   parts.other_ns = ["outside operators", "#8C96A0"]
CREATE OR REPLACE MACRO host_accounting_v1(
    -- Runs to include; NULL means every run.
    runs VARCHAR[] := NULL,
    -- Ranks to include; NULL means every rank.
    ranks INTEGER[] := NULL,
    -- Profiler steps to include; NULL means every step, or the whole trace if it has no steps.
    steps BIGINT[] := NULL,
    -- Whether to include the last profiler step; a run's only step is always included.
    include_last_profiler_step BOOLEAN := false
) AS TABLE
-- Columns:
--   run                  VARCHAR      Run name.
--   rank                 INTEGER      Rank of the process.
--   step                 BIGINT       Profiler step; NULL if the trace has no steps and the row covers all of it.
--   step_ns              BIGINT [ns]  Duration of the step on the host: the sum of the seven parts.
--   data_loading_ns      BIGINT [ns]  Time with a data loader open.
--   synchronization_ns   BIGINT [ns]  Time in calls and operators that wait for a device or read a value from it.
--   communication_ns     BIGINT [ns]  Time in operators that communicate, and time in which only gloo runs.
--   backward_ns          BIGINT [ns]  Time in operators of autograd's backward pass, on any thread.
--   optimizer_ns         BIGINT [ns]  Time in the annotations of an optimizer.
--   forward_ns           BIGINT [ns]  Time in other operators, such as those of the forward pass and of the loss.
--   other_ns             BIGINT [ns]  Time outside operators, such as Python code, or sleeping; `source_lines` shows the lines.
--   data_loading_pct     DOUBLE [%]   data_loading_ns as a share of the step.
--   synchronization_pct  DOUBLE [%]   synchronization_ns as a share of the step.
--   communication_pct    DOUBLE [%]   communication_ns as a share of the step.
--   backward_pct         DOUBLE [%]   backward_ns as a share of the step.
--   optimizer_pct        DOUBLE [%]   optimizer_ns as a share of the step.
--   forward_pct          DOUBLE [%]   forward_ns as a share of the step.
--   other_pct            DOUBLE [%]   other_ns as a share of the step.
SELECT
    h.run, h.rank, h.step, h.step_ns,
    h.data_loading_ns, h.synchronization_ns, h.communication_ns, h.backward_ns, h.optimizer_ns, h.forward_ns, h.other_ns,
    100 * (h.data_loading_ns / nullif(h.step_ns, 0)) AS data_loading_pct,
    100 * (h.synchronization_ns / nullif(h.step_ns, 0)) AS synchronization_pct,
    100 * (h.communication_ns / nullif(h.step_ns, 0)) AS communication_pct,
    100 * (h.backward_ns / nullif(h.step_ns, 0)) AS backward_pct,
    100 * (h.optimizer_ns / nullif(h.step_ns, 0)) AS optimizer_pct,
    100 * (h.forward_ns / nullif(h.step_ns, 0)) AS forward_pct,
    100 * (h.other_ns / nullif(h.step_ns, 0)) AS other_pct
FROM lib.host_steps(runs, ranks, steps, include_last_profiler_step) AS h
ORDER BY h.run, h.rank, h.step
