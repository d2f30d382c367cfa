-- Slow ranks, hosts, pipeline stages and steps of a run.
--
-- Ranks, hosts and steps are judged by step time without waits for other ranks (non_wait_ns). Each rank is compared
-- with the other ranks of the same step and pipeline stage, each host with the other hosts, and each step with the
-- other steps of the rank. Distances from the median are in standard deviations, estimated from the median absolute
-- deviation. The estimate is at least 1 % of the median, so with the default slow_z, nothing within 3.5 % of the
-- median is slow. Comparisons need at least three ranks, three steps, or two hosts with two ranks each. A host is slow
-- if the median of its ranks is slow; a rank of a slow host is slow only if it is slow compared with its neighbors.
-- Steps of all pipeline stages are equally long, so stages are compared by compute time: a stage is slow if the
-- compute time of its median rank is at least slow_stage_ratio times the mean of the other stages. compute_ns,
-- transfer_ns, unmatched_ns, wait_ns, memory_ns, unrecorded_ns and idle_ns sum to step_ns. A rank whose unmatched time is
-- 1 % or more of a step is not compared with other ranks in it, because its waits are unknown. A slow rank is one whose
-- step is long; whether others wait for it is the straggler_verdict of the analysis stragglers.
--
-- Title: Slow ranks and slow steps
-- Shown: rank, step, step_ns, compute_ns, wait_ns, idle_ns, verdict, straggler_verdict, host_name, stage
-- Status: stable
-- Since: 0.1
-- Reference: MindSpore Insight cluster overview, slow host and slow card
-- Needs: nothing; steps need the profiler's schedule, and memory peaks need profile_memory=True
-- Report: of several ranks
CREATE OR REPLACE MACRO cluster_overview_v1(
    runs VARCHAR[] := NULL,
    -- Ranks to show; NULL means every rank. The comparison uses all ranks.
    ranks INTEGER[] := NULL,
    -- Profiler steps to show; NULL means every step. The comparison uses all steps.
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false,
    -- Minimum distance above the median at which a rank, host or step is slow, in standard deviations.
    slow_z DOUBLE := 3.5,
    -- Minimum stage_ratio at which a pipeline stage is slow.
    slow_stage_ratio DOUBLE := 1.2
) AS TABLE
-- Columns:
--   run                   VARCHAR         Run name.
--   rank                  INTEGER         Rank of the process.
--   step                  BIGINT          Profiler step; NULL if the trace has no steps and the row covers all of it.
--   host_name             VARCHAR         Host name; NULL if not recorded.
--   stage                 INTEGER         Pipeline stage, from 0; NULL without pipeline parallelism.
--   step_ns               BIGINT [ns]     Duration of the step on the host.
--   compute_ns            BIGINT [ns]     Time with a computation kernel running; NULL for a rank without device activity, as memory_ns and idle_ns.
--   transfer_ns           BIGINT [ns]     Time in collectives after all ranks arrived, not overlapped by compute.
--   unmatched_ns          BIGINT [ns]     Time in collectives that are unmatched, or whose end times disagree, not overlapped by compute or transfer: transfer or wait, which of the two is unknown.
--   wait_ns               BIGINT [ns]     Exposed wait: time in matched collectives before the last rank arrives, clipped to the step, not overlapped by compute or transfer.
--   memory_ns             BIGINT [ns]     Time in copies and memsets, not overlapped by compute or communication.
--   unrecorded_ns         BIGINT [ns]     Time in which the device ran work that is not in the trace: neither idle nor compute.
--   idle_ns               BIGINT [ns]     Time with no activity on the device.
--   non_wait_ns           BIGINT [ns]     Recorded part of step_ns minus wait_ns; NULL if 1 % or more of it is unmatched.
--   host_mean_ns          DOUBLE [ns]     Mean non_wait_ns over the ranks of the host in the step; NULL if the host is unknown or all of its ranks are unmatched.
--   rank_z                DOUBLE [1]      Distance from the other ranks of the step, in standard deviations; NULL for fewer than three ranks.
--   host_z                DOUBLE [1]      Distance of the host from the other hosts, in standard deviations; NULL for fewer than two hosts with two ranks each.
--   step_z                DOUBLE [1]      Distance of the step from the other steps, as the median over the ranks, in standard deviations; NULL for fewer than three steps.
--   stage_ratio           DOUBLE [1]      Compute time of the stage as a multiple of the mean of the other stages in the step; NULL for fewer than two stages.
--   is_slow_rank          BOOLEAN         Whether the rank is slow in this step; NULL if it cannot be compared.
--   is_slow_host          BOOLEAN         Whether the host of the rank is slow in this step.
--   is_slow_step          BOOLEAN         Whether the step is slow on the median rank, and therefore counts as slow on all ranks.
--   is_slow_stage         BOOLEAN         Whether the stage is slow in this step; NULL for fewer than two stages.
--   verdict               VARCHAR         slow host, slow rank, slow stage, slow on all ranks or as usual; NULL if nothing can be compared.
--   straggler_verdict     VARCHAR         Verdict of the analysis stragglers on the rank over all steps, whether others wait for it: straggler, suspected, intermittent, none or unknown.
--   slow_count            BIGINT [count]  Number of steps in which the rank or its host is slow.
--   step_count            BIGINT [count]  Number of steps of the rank in the comparison.
--   peak_allocated_bytes  BIGINT [bytes]  Highest allocated total in the step, on the device with the highest peak; NULL without memory events.
--   peak_reserved_bytes   BIGINT [bytes]  Highest reserved total of the same device in the step; NULL without memory events.
--   capacity_bytes        BIGINT [bytes]  Memory of the same device.
--   peak_pct              DOUBLE [%]      Higher of the two peaks, as a share of capacity_bytes.
WITH
    known AS MATERIALIZED (
        SELECT
            p.run, p.rank, p.step, k.host_name, r.stage, p.step_ns, p.recorded_ns, p.compute_ns, p.exposed_transfer_ns, p.exposed_unmatched_ns, p.exposed_wait_ns, p.exposed_memory_ns,
            p.recorded_ns - p.exposed_wait_ns AS own,
            CASE WHEN 100::HUGEINT * p.exposed_unmatched_ns < p.recorded_ns THEN p.recorded_ns - p.exposed_wait_ns END AS work
        -- Compare all ranks and steps first, then filter: whether a rank is slow depends on all others.
        FROM lib.scoped_steps(runs, NULL, NULL, include_last_profiler_step) AS p
        JOIN ranks AS k ON k.run = p.run AND k.rank = p.rank
        LEFT JOIN lib.pipeline_ranks(runs) AS r ON r.run = p.run AND r.rank = p.rank
    ),
    centered AS (
        SELECT
            k.*,
            median(k.work) OVER peers AS middle, count(k.work) OVER peers AS peer_count,
            CASE WHEN k.host_name IS NOT NULL THEN median(k.work) OVER host END AS host_middle,
            CASE WHEN k.host_name IS NOT NULL THEN (sum(k.work) OVER host) / (count(k.work) OVER host) END AS host_mean,
            median(k.own) OVER all_steps AS usual, count(*) OVER all_steps AS step_count
        FROM known AS k
        WINDOW
            peers AS (PARTITION BY k.run, k.step, k.stage),
            host AS (PARTITION BY k.run, k.step, k.stage, k.host_name),
            all_steps AS (PARTITION BY k.run, k.rank)
    ),
    spread AS (
        SELECT
            c.*,
            greatest(1.4826 * median(abs(c.work - c.middle)) OVER peers, 0.01 * c.middle) AS rank_scale,
            greatest(1.4826 * median(abs(c.work - c.host_middle)) OVER peers, 0.01 * c.middle) AS host_scale,
            greatest(1.4826 * median(abs(c.own - c.usual)) OVER all_steps, 0.01 * c.usual) AS step_scale
        FROM centered AS c
        WINDOW peers AS (PARTITION BY c.run, c.step, c.stage), all_steps AS (PARTITION BY c.run, c.rank)
    ),
    hosts AS (
        SELECT c.run, c.step, c.stage, c.host_name, any_value(c.host_middle) AS host_middle, count(c.work) AS rank_count
        FROM centered AS c
        GROUP BY c.run, c.step, c.stage, c.host_name
    ),
    compared_hosts AS (
        SELECT
            h.run, h.step, h.stage,
            -- With two hosts, quantile_disc returns the median of the faster host.
            CASE WHEN count(*) >= 2 AND count(h.host_name) = count(*) AND min(h.rank_count) >= 2 THEN quantile_disc(h.host_middle, 0.5) END AS base
        FROM hosts AS h
        GROUP BY h.run, h.step, h.stage
    ),
    scored AS (
        SELECT
            s.*,
            CASE WHEN s.peer_count >= 3 THEN (s.work - s.middle) / nullif(s.rank_scale, 0) END AS rank_distance,
            (s.host_middle - h.base) / nullif(s.host_scale, 0) AS host_distance,
            CASE WHEN h.base IS NOT NULL THEN (s.work - s.host_middle) / nullif(s.host_scale, 0) END AS neighbor_distance,
            CASE WHEN s.step_count >= 3 AND s.step IS NOT NULL THEN (s.own - s.usual) / nullif(s.step_scale, 0) END AS step_distance
        FROM spread AS s
        LEFT JOIN compared_hosts AS h ON h.run = s.run AND h.step IS NOT DISTINCT FROM s.step AND h.stage IS NOT DISTINCT FROM s.stage
    ),
    stages AS (
        SELECT k.run, k.step, k.stage, median(k.compute_ns) AS compute
        FROM known AS k
        WHERE k.stage IS NOT NULL
        GROUP BY k.run, k.step, k.stage
    ),
    compared_stages AS (
        SELECT
            t.run, t.step, t.stage,
            t.compute / nullif((sum(t.compute) OVER job - t.compute) / nullif(count(*) OVER job - 1, 0), 0) AS ratio
        FROM stages AS t
        WINDOW job AS (PARTITION BY t.run, t.step)
    ),
    judged AS (
        SELECT
            d.*,
            median(d.step_distance) OVER (PARTITION BY d.run, d.step) AS step_middle,
            d.host_distance >= slow_z AS host_is_slow,
            CASE WHEN d.host_distance >= slow_z THEN d.neighbor_distance ELSE d.rank_distance END >= slow_z AS rank_is_slow
        FROM scored AS d
    ),
    counted AS (
        SELECT
            j.*,
            count_if(coalesce(j.host_is_slow, false) OR coalesce(j.rank_is_slow, false)) OVER (PARTITION BY j.run, j.rank) AS slow_steps
        FROM judged AS j
    ),
    peaks AS (
        SELECT d.run, d.rank, d.step, d.peak_allocated_bytes AS allocated, d.peak_reserved_bytes AS reserved, d.capacity_bytes AS capacity
        FROM lib.memory_peaks(runs, ranks, NULL, true) AS d
        WHERE d.device_type <> 0
        QUALIFY row_number() OVER (PARTITION BY d.run, d.rank, d.step ORDER BY greatest(d.peak_allocated_bytes, d.peak_reserved_bytes) DESC NULLS LAST, d.device) = 1
    )
SELECT
    c.run,
    c.rank,
    c.step,
    c.host_name,
    c.stage,
    c.step_ns,
    CASE WHEN d.run IS NOT NULL THEN c.compute_ns END AS compute_ns,
    c.exposed_transfer_ns AS transfer_ns,
    c.exposed_unmatched_ns AS unmatched_ns,
    c.exposed_wait_ns AS wait_ns,
    CASE WHEN d.run IS NOT NULL THEN c.exposed_memory_ns END AS memory_ns,
    c.step_ns - c.recorded_ns AS unrecorded_ns,
    CASE
        WHEN d.run IS NOT NULL
            THEN c.recorded_ns - c.compute_ns - c.exposed_transfer_ns - c.exposed_unmatched_ns - c.exposed_wait_ns - c.exposed_memory_ns
    END AS idle_ns,
    c.work AS non_wait_ns,
    c.host_mean AS host_mean_ns,
    c.rank_distance AS rank_z,
    c.host_distance AS host_z,
    c.step_middle AS step_z,
    t.ratio AS stage_ratio,
    c.rank_is_slow AS is_slow_rank,
    c.host_is_slow AS is_slow_host,
    c.step_middle >= slow_z AS is_slow_step,
    t.ratio >= slow_stage_ratio AS is_slow_stage,
    CASE
        WHEN c.host_is_slow AND NOT coalesce(c.rank_is_slow, false) THEN 'slow host'
        WHEN c.rank_is_slow THEN 'slow rank'
        WHEN t.ratio >= slow_stage_ratio THEN 'slow stage'
        WHEN c.step_middle >= slow_z THEN 'slow on all ranks'
        WHEN coalesce(c.rank_distance, c.host_distance, t.ratio) IS NOT NULL THEN 'as usual'
    END AS verdict,
    v.verdict AS straggler_verdict,
    c.slow_steps::BIGINT AS slow_count,
    c.step_count,
    p.allocated AS peak_allocated_bytes,
    p.reserved AS peak_reserved_bytes,
    p.capacity AS capacity_bytes,
    100 * (greatest(p.allocated, p.reserved) / nullif(p.capacity, 0)) AS peak_pct
FROM counted AS c
LEFT JOIN peaks AS p ON p.run = c.run AND p.rank = c.rank AND p.step IS NOT DISTINCT FROM c.step
LEFT JOIN compared_stages AS t ON t.run = c.run AND t.step IS NOT DISTINCT FROM c.step AND t.stage = c.stage
LEFT JOIN lib.device_ranks(runs, ranks) AS d ON d.run = c.run AND d.rank = c.rank
LEFT JOIN lib.rank_verdicts(runs) AS v ON v.run = c.run AND v.rank = c.rank
WHERE lib.is_requested(ranks, c.rank) AND lib.is_requested(steps, c.step)
ORDER BY c.run, c.step, c.rank
