-- When each rank starts the collective with the most uneven waits, step by step.
--
-- Candidates are communication kernels that last at least min_share of a mean step on any rank. The analysis picks the
-- process group (or stream), kernel name and position in the step whose durations differ most between ranks. A rank
-- that starts late delays the others. HTA uses only the last kernel of a step, by which time a delay at the start of
-- the step has been absorbed. HTA drops short kernels, although the kernels of a late rank are short. It recognizes
-- only kernels named ncclKernel on streams above 0 (Q45 in docs/hta_differences.md). A run without profiler steps is
-- one step. The clocks of the ranks must agree.
--
-- Title: The collective with the most uneven waits
-- Shown: step, rank, late_ns, is_late, name, channel, dur, ts
-- Status: stable
-- Since: 0.1
-- Reference: HTA get_potential_stragglers, its metric
-- Needs: GPU activity of two ranks that communicate
CREATE OR REPLACE MACRO straggler_metric_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false,
    -- Number of ranks to mark as late in each step; at least 1.
    num_candidates BIGINT := 2,
    -- Minimum kernel duration, as a share of the mean step duration; if no two ranks share a kernel that long, shorter
    -- kernels are used.
    min_share DOUBLE := 0.01,
    -- Whether to use only the last long kernel of each rank and step, as HTA does.
    last_only BOOLEAN := false
) AS TABLE
-- Columns:
--   run               VARCHAR      Run name.
--   step              BIGINT       Profiler step; NULL in a run without steps.
--   rank              INTEGER      Rank of the process.
--   name              VARCHAR      Name of the kernel.
--   channel           VARCHAR      Process group of the kernel, or its stream if the trace names no group.
--   device            BIGINT       Device number.
--   stream            BIGINT       Device stream.
--   event_id          BIGINT       event_id of the kernel.
--   ts                BIGINT [ns]  Start of the kernel, relative to the run's first event.
--   dur               BIGINT [ns]  Duration of the kernel.
--   late_ns           BIGINT [ns]  Delay after the first rank's start in the step.
--   normalized_start  DOUBLE [1]   Start of the kernel relative to the start of the first step, as a multiple of the mean step duration (HTA's metric).
--   is_long           BOOLEAN      Whether kernels of at least min_share were found; false if shorter kernels were used.
--   is_late           BOOLEAN      Whether the rank is among the last num_candidates to start in the step, including ties.
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
