-- Mean step time of each rank in a cluster by phase, to show which host or device is slow in which phase.
--
-- The means cover the steps of cluster_step_trace that are in the store; MindSpore's own mean also covers other steps.
-- The first step often includes job startup; exclude it with steps := [2, 3, ...]. Each mean covers the steps for
-- which its phase is known.
--
-- Title: Mean step of each rank
-- Shown: rank, mean_total_ns, mean_computation_ns, mean_communication_alone_ns, mean_forward_backward_ns, mean_iteration_interval_ns
-- Status: stable
-- Since: 0.1
-- Reference: MindSpore Insight, cluster step trace (step 0)
-- Needs: MindSpore cluster data, or the profiler's schedule and GPU activity
CREATE OR REPLACE MACRO cluster_step_means_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    -- Steps to include; NULL means every step.
    steps BIGINT[] := NULL,
    -- Whether to include the last profiler step; a run's only step is always included. MindSpore steps are complete and always
    -- included.
    include_last_profiler_step BOOLEAN := false
) AS TABLE
-- Columns:
--   run                          VARCHAR         Run name.
--   rank                         INTEGER         Rank of the process.
--   step_count                   BIGINT [count]  Number of steps.
--   mean_total_ns                DOUBLE [ns]     Mean step duration.
--   mean_iteration_interval_ns   DOUBLE [ns]     Mean time from the end of the previous step to the forward pass.
--   mean_forward_backward_ns     DOUBLE [ns]     Mean duration of the forward and backward pass.
--   mean_tail_ns                 DOUBLE [ns]     Mean time from the end of the backward pass to the end of the step.
--   mean_computation_ns          DOUBLE [ns]     Mean compute time.
--   mean_communication_alone_ns  DOUBLE [ns]     Mean exposed communication time (not overlapped by compute).
--   mean_receive_alone_ns        DOUBLE [ns]     Mean time in receives only, with no compute or other communication; NULL without sends and receives.
--   mean_collective_alone_ns     DOUBLE [ns]     Mean exposed communication time outside receives; NULL without sends and receives.
--   mean_stage_ns                DOUBLE [ns]     Mean step duration minus receive-only time; NULL without sends and receives.
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
