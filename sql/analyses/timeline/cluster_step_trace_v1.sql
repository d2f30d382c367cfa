-- Each step of each rank of a MindSpore cluster: iteration interval, forward and backward, tail.
--
-- The three parts are the whole step. A long interval on one host means slow data, a long forward
-- and backward pass slow computing, a long tail slow communication of parameters. The step that
-- the recorder wrote as mean is left out (it is in cluster_step_traces, with step NULL); means over
-- the steps that are here are those of cluster_step_means.
--
-- Status: stable
-- Since: 0.1
-- Reference: MindSpore Insight, cluster step trace
-- Needs: MindSpore cluster data
-- Scope: runs, ranks, steps; its steps were measured whole, no profiler stops inside the last
CREATE OR REPLACE MACRO cluster_step_trace_v1(
    -- Runs to include; NULL means every run.
    runs VARCHAR[] := NULL,
    -- Ranks to include; NULL means every rank.
    ranks INTEGER[] := NULL,
    -- Steps to include; NULL means every step.
    steps BIGINT[] := NULL
) AS TABLE
-- Columns:
--   run                     VARCHAR      Run name.
--   rank                    INTEGER      Rank of the process.
--   step                    BIGINT       Number of the step.
--   total_ns                BIGINT [ns]  Length of the step.
--   iteration_interval_ns   BIGINT [ns]  From the end of the last step to the forward pass.
--   forward_backward_ns     BIGINT [ns]  Forward and backward pass.
--   tail_ns                 BIGINT [ns]  From the end of the backward pass to the end of the step.
--   computation_ns          BIGINT [ns]  Computing.
--   communication_alone_ns  BIGINT [ns]  Communicating and not computing.
--   receive_alone_ns        BIGINT [ns]  Receiving and nothing else; NULL without pipeline stages.
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
FROM cluster_step_traces AS s
WHERE
    s.step IS NOT NULL
    AND s.total_ns IS NOT NULL
    AND lib.wanted(runs, s.run)
    AND lib.wanted(ranks, s.rank)
    AND lib.wanted(steps, s.step)
ORDER BY s.run, s.rank, s.step
