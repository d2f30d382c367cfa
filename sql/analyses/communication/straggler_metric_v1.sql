-- When each rank starts the collective that its ranks wait for most differently, step by step.
--
-- Of the communication kernels that last a share of a mean step on any rank, those of one process group
-- (or stream), name and place in the step whose duration differs most among ranks. Who starts late holds
-- up the others. HTA looks at the last kernel of a step only, when a delay at its start has long been
-- waited for; it leaves out short ones, and who is late runs a short one; it knows kernels named ncclKernel
-- on streams above 0 only (Q45). A run without profiler steps is one step. The clocks of the ranks have
-- to agree.
--
-- Title: The collective with the most uneven waits
-- Status: stable
-- Since: 0.1
-- Reference: HTA get_potential_stragglers, its metric
-- Needs: GPU activity of two ranks that communicate
CREATE OR REPLACE MACRO straggler_metric_v1(
    -- Runs to include; NULL means every run.
    runs VARCHAR[] := NULL,
    -- Ranks to include; NULL means every rank.
    ranks INTEGER[] := NULL,
    -- Profiler steps to include; NULL means every step and all activity outside steps.
    steps BIGINT[] := NULL,
    -- Whether to include the last profiler step of a run with two or more.
    include_last_profiler_step BOOLEAN := false,
    -- Ranks to mark in each step; at least 1.
    num_candidates BIGINT := 2,
    -- Shortest kernel to look at, as a share of the mean step; shorter ones where no two ranks share one so long.
    min_share DOUBLE := 0.01,
    -- Whether to look at the last long one of each rank and step only, as HTA does.
    last_only BOOLEAN := false
) AS TABLE
-- Columns:
--   run               VARCHAR      Run name.
--   step              BIGINT       Profiler step; NULL in a run without steps.
--   rank              INTEGER      Rank of the process.
--   name              VARCHAR      Kernel looked at.
--   channel           VARCHAR      Its process group, or its stream where the trace names no group.
--   device            BIGINT       Device number.
--   stream            BIGINT       Device stream.
--   event_id          BIGINT       event_id of the kernel.
--   ts                BIGINT [ns]  Its start, since the run's first event.
--   dur               BIGINT [ns]  Its duration.
--   late_ns           BIGINT [ns]  Start after the first rank's start in the step.
--   normalized_start  DOUBLE [1]   Start since the first step, in mean steps: HTA's metric.
--   is_long           BOOLEAN      Kernels of min_share were found; false: shorter ones had to do.
--   is_late           BOOLEAN      Among the last to start in the step: as many as num_candidates, and who starts with them.
SELECT
    l.run,
    l.step,
    l.rank,
    l.name,
    l.channel,
    l.device,
    l.stream,
    l.event_id,
    l.ts,
    l.dur,
    l.ts - min(l.ts) OVER in_step AS late_ns,
    (l.ts - l.first_ts) / nullif(l.mean_dur, 0) AS normalized_start,
    l.is_long,
    rank() OVER (PARTITION BY l.run, l.step ORDER BY l.ts DESC) <= greatest(1, num_candidates) AS is_late
FROM lib.late_starts(runs, ranks, steps, include_last_profiler_step, min_share, last_only) AS l
WINDOW in_step AS (PARTITION BY l.run, l.step)
ORDER BY l.run, l.step, l.rank
