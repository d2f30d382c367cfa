-- Means over the steps of each rank of a cluster: which host or device is slow, and in what.
--
-- The steps are those of cluster_step_trace that are in the store: MindSpore's own mean covers others, too.
-- The first step often contains the start of the job; leave it out with steps := [2, 3, ...]. A mean is over
-- the steps in which its part is known.
--
-- Title: Mean step of each rank
-- Status: stable
-- Since: 0.1
-- Reference: MindSpore Insight, cluster step trace (step 0)
-- Needs: MindSpore cluster data, or the profiler's schedule and GPU activity
CREATE OR REPLACE MACRO cluster_step_means_v1(
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
--   run                          VARCHAR         Run name.
--   rank                         INTEGER         Rank of the process.
--   step_count                   BIGINT [count]  Steps.
--   mean_total_ns                DOUBLE [ns]     Length of a step.
--   mean_iteration_interval_ns   DOUBLE [ns]     From the end of the last step to the forward pass.
--   mean_forward_backward_ns     DOUBLE [ns]     Forward and backward pass.
--   mean_tail_ns                 DOUBLE [ns]     From the end of the backward pass to the end of the step.
--   mean_computation_ns          DOUBLE [ns]     Computing.
--   mean_communication_alone_ns  DOUBLE [ns]     Communicating and not computing.
--   mean_receive_alone_ns        DOUBLE [ns]     Receiving and nothing else; NULL without sends and receives.
--   mean_collective_alone_ns     DOUBLE [ns]     Communicating without receiving, and not computing; likewise.
--   mean_stage_ns                DOUBLE [ns]     The step without receiving alone; likewise.
SELECT
    s.run,
    s.rank,
    count(*) AS step_count,
    sum(s.total_ns) / count(s.total_ns)::DOUBLE AS mean_total_ns,
    sum(s.iteration_interval_ns) / count(s.iteration_interval_ns)::DOUBLE AS mean_iteration_interval_ns,
    sum(s.forward_backward_ns) / count(s.forward_backward_ns)::DOUBLE AS mean_forward_backward_ns,
    sum(s.tail_ns) / count(s.tail_ns)::DOUBLE AS mean_tail_ns,
    sum(s.computation_ns) / count(s.computation_ns)::DOUBLE AS mean_computation_ns,
    sum(s.communication_alone_ns) / count(s.communication_alone_ns)::DOUBLE AS mean_communication_alone_ns,
    sum(s.receive_alone_ns) / count(s.receive_alone_ns)::DOUBLE AS mean_receive_alone_ns,
    sum(s.collective_alone_ns) / count(s.collective_alone_ns)::DOUBLE AS mean_collective_alone_ns,
    sum(s.stage_ns) / count(s.stage_ns)::DOUBLE AS mean_stage_ns
FROM lib.cluster_steps(runs, ranks, steps, include_last_profiler_step) AS s
GROUP BY s.run, s.rank
ORDER BY s.run, s.rank
