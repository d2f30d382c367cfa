-- Each step of each rank of a cluster: iteration interval, forward and backward, tail.
--
-- The three parts are the whole step. A long interval on one host means slow data, a long forward
-- and backward pass slow computing, a long tail slow communication of parameters. Steps of a MindSpore
-- cluster are as its recorder measured them, without the step that it wrote as mean (it is in
-- cluster_step_traces, with step NULL). Those of other traces follow each other on the device: a step begins
-- where the host's does and the one before has ended there, and ends with the host's or with the last kernel
-- launched in it. The forward pass begins with its first computation that neither backward pass nor optimizer
-- launched; the backward pass ends with the last computation launched under autograd's engine, a backward
-- operator or an annotation that says backward. A later stage of a pipeline has its wait for the first
-- micro-batch in its interval, the first step of a capture what was launched before it. Means over the steps are those of cluster_step_means.
--
-- Title: Phases of each step
-- Status: stable
-- Since: 0.1
-- Reference: MindSpore Insight, cluster step trace
-- Needs: MindSpore cluster data, or the profiler's schedule and GPU activity
CREATE OR REPLACE MACRO cluster_step_trace_v1(
    -- Runs to include; NULL means every run.
    runs VARCHAR[] := NULL,
    -- Ranks to include; NULL means every rank.
    ranks INTEGER[] := NULL,
    -- Steps to include; NULL means every step.
    steps BIGINT[] := NULL,
    -- Whether to include the last profiler step of a run with two or more; MindSpore's steps were measured whole.
    include_last_profiler_step BOOLEAN := false
) AS TABLE
-- Columns:
--   run                     VARCHAR      Run name.
--   rank                    INTEGER      Rank of the process.
--   step                    BIGINT       Number of the step.
--   total_ns                BIGINT [ns]  Length of the step.
--   iteration_interval_ns   BIGINT [ns]  From the end of the last step to the forward pass; NULL where none is found.
--   forward_backward_ns     BIGINT [ns]  Forward and backward pass; NULL where either is not found.
--   tail_ns                 BIGINT [ns]  From the end of the backward pass to the end of the step; likewise.
--   computation_ns          BIGINT [ns]  Computing.
--   communication_alone_ns  BIGINT [ns]  Communicating and not computing.
--   receive_alone_ns        BIGINT [ns]  Receiving and neither computing nor any other communication; NULL without sends and receives, or where they are not told apart.
--   collective_alone_ns     BIGINT [ns]  Communicating without receiving, and not computing; likewise.
--   stage_ns                BIGINT [ns]  The step without receiving alone; likewise.
SELECT
    s.run,
    s.rank,
    s.step,
    s.total_ns,
    s.iteration_interval_ns,
    s.forward_backward_ns,
    s.tail_ns,
    s.computation_ns,
    s.communication_alone_ns,
    s.receive_alone_ns,
    s.collective_alone_ns,
    s.stage_ns
FROM lib.cluster_steps(runs, ranks, steps, include_last_profiler_step) AS s
ORDER BY s.run, s.rank, s.step
