-- Phases of each step on each rank in a cluster: iteration interval, forward and backward pass, tail.
--
-- The three phases sum to the step. If one host has a long interval, its data loading is slow; a long forward and
-- backward pass indicates slow compute, and a long tail indicates slow communication of parameters. Steps of a
-- MindSpore cluster are reported as its recorder measured them. The mean step that the recorder also wrote is not
-- included (see step NULL in cluster_step_traces).
--
-- Steps of other traces are consecutive on the device. A step begins when the host step has begun and the previous
-- step has ended on the device. It ends with the host step or with the last kernel launched in the step, whichever is
-- later. The forward pass begins with the first computation launched by neither the backward pass nor the optimizer.
-- The backward pass ends with the last computation launched under the autograd engine, a backward operator, or an
-- annotation that contains "backward". The iteration interval of a later pipeline stage includes its wait for the
-- first micro-batch. The iteration interval of the first step includes work launched before the step. For means over
-- steps, see cluster_step_means.
--
-- Title: Phases of each step
-- Shown: rank, step, total_ns, computation_ns, communication_alone_ns, forward_backward_ns, iteration_interval_ns
-- Status: stable
-- Since: 0.1
-- Reference: MindSpore Insight, cluster step trace
-- Needs: MindSpore cluster data, or the profiler's schedule and GPU activity
-- Chart:
--   mark = "stack"
--   title = "Iteration interval, forward and backward, tail"
--   notes = [
--     "Mean device step of each rank. Device steps follow each other without overlap, so they differ from host steps.",
--     "A long interval: late data. A long forward and backward: slow computation. A long tail: optimizer and",
--     "communication of parameters.",
--   ]
--   mean = "step"
--   legend = "Part"
--   whole = "the step"
--   parts.iteration_interval_ns = ["iteration interval", "neutral"]
--   parts.forward_backward_ns = ["forward and backward", "computation"]
--   parts.tail_ns = ["tail", "communication"]
--   total = "total_ns"
--   rest = ["not separable", "normal"]
CREATE OR REPLACE MACRO cluster_step_trace_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    -- Steps to include; NULL means every step.
    steps BIGINT[] := NULL,
    -- Whether to include the last profiler step; a run's only step is always included. MindSpore steps are complete and always
    -- included.
    include_last_profiler_step BOOLEAN := false
) AS TABLE
-- Columns:
--   run                     VARCHAR      Run name.
--   rank                    INTEGER      Rank of the process.
--   step                    BIGINT       Step number.
--   total_ns                BIGINT [ns]  Step duration.
--   iteration_interval_ns   BIGINT [ns]  Time from the end of the previous step to the forward pass; NULL if no forward pass is found.
--   forward_backward_ns     BIGINT [ns]  Duration of the forward and backward pass; NULL if either is not found.
--   tail_ns                 BIGINT [ns]  Time from the end of the backward pass to the end of the step; NULL if no backward pass is found.
--   computation_ns          BIGINT [ns]  Compute time.
--   communication_alone_ns  BIGINT [ns]  Exposed communication time (not overlapped by compute).
--   receive_alone_ns        BIGINT [ns]  Time in receives only, with no compute or other communication; NULL without sends and receives, or if sends cannot be distinguished from receives.
--   collective_alone_ns     BIGINT [ns]  Exposed communication time outside receives; NULL if receive_alone_ns is NULL.
--   stage_ns                BIGINT [ns]  Step duration minus receive-only time; NULL if receive_alone_ns is NULL.
SELECT s.*
FROM lib.cluster_steps(runs, ranks, steps, include_last_profiler_step) AS s
ORDER BY s.run, s.rank, s.step
