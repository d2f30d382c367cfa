-- Ranks that hold up the others: how often each starts the collective of a step among the last.
--
-- The collective is that of straggler_metric. In each step the last ranks to start it are counted;
-- who is counted most often is a candidate, of equals who is later in total. A row for every rank that
-- has events, and where nothing can be said, why.
--
-- Title: Ranks that start a collective last
-- Status: stable
-- Since: 0.1
-- Reference: HTA get_potential_stragglers
-- Needs: GPU activity of two ranks that communicate
CREATE OR REPLACE MACRO potential_stragglers_v1(
    -- Runs to include; NULL means every run.
    runs VARCHAR[] := NULL,
    -- Ranks to include; NULL means every rank.
    ranks INTEGER[] := NULL,
    -- Profiler steps to include; NULL means every step and all activity outside steps.
    steps BIGINT[] := NULL,
    -- Whether to include the last profiler step of a run with two or more.
    include_last_profiler_step BOOLEAN := false,
    -- Candidates to find; at least 1.
    num_candidates BIGINT := 2,
    -- Shortest kernel to look at, as a share of the mean step; shorter ones where no two ranks share one so long.
    min_share DOUBLE := 0.01,
    -- Whether to look at the last long one of each rank and step only, as HTA does.
    last_only BOOLEAN := false
) AS TABLE
-- Columns:
--   run            VARCHAR         Run name.
--   rank           INTEGER         Rank of the process.
--   is_candidate   BOOLEAN         Among the potential stragglers; NULL where nothing can be said.
--   late_count     BIGINT [count]  Steps in which it was among the last to start.
--   step_count     BIGINT [count]  Steps in which it ran the collective.
--   total_late_ns  BIGINT [ns]     Sum of its starts after the first rank's start.
--   max_late_ns    BIGINT [ns]     Largest of them.
--   name           VARCHAR         Kernel looked at.
--   channel        VARCHAR         Its process group, or its stream where the trace names no group.
--   is_long        BOOLEAN         Kernels of min_share were found; false: shorter ones had to do.
--   reason_code    VARCHAR         Code of the reason in the table messages.
--   reason         VARCHAR         Why nothing can be said; NULL otherwise.
WITH
    known AS (
        SELECT k.run, k.rank, count(*) OVER (PARTITION BY k.run) AS rank_count
        FROM ranks AS k
        WHERE
            k.event_count > 0
            AND lib.is_requested(runs, k.run)
            AND lib.is_requested(ranks, k.rank)
    ),
    starts AS (
        SELECT
            l.*,
            l.ts - min(l.ts) OVER (PARTITION BY l.run, l.step) AS late,
            rank() OVER (PARTITION BY l.run, l.step ORDER BY l.ts DESC) <= greatest(1, num_candidates) AS is_late
        FROM lib.late_starts(runs, ranks, steps, include_last_profiler_step, min_share, last_only) AS l
    ),
    totals AS (
        SELECT
            s.run, s.rank, s.name, s.channel, s.is_long,
            count(*) FILTER (s.is_late) AS late_count,
            count(*) AS step_count,
            sum(s.late)::BIGINT AS total_late_ns,
            max(s.late) AS max_late_ns
        FROM starts AS s
        GROUP BY ALL
    ),
    placed AS (
        SELECT
            t.*,
            row_number() OVER (PARTITION BY t.run ORDER BY t.late_count DESC, t.total_late_ns DESC, t.rank) AS position
        FROM totals AS t
    ),
    communicating AS (
        SELECT DISTINCT g.run
        FROM lib.scoped_gpu_ops(runs, ranks, steps, include_last_profiler_step) AS g
        WHERE g.class = 'communication'
    ),
    measured AS (
        SELECT DISTINCT t.run
        FROM totals AS t
    ),
    reasoned AS (
        SELECT
            k.run, k.rank, p.* EXCLUDE (run, rank),
            CASE
                WHEN p.rank IS NOT NULL THEN NULL
                WHEN m.run IS NOT NULL THEN 'potential_stragglers.collective_not_run'
                WHEN k.rank_count < 2 THEN 'potential_stragglers.single_rank'
                WHEN c.run IS NULL THEN 'potential_stragglers.no_communication'
                ELSE 'potential_stragglers.no_shared_collective'
            END AS reason_code
        FROM known AS k
        LEFT JOIN placed AS p ON p.run = k.run AND p.rank = k.rank
        LEFT JOIN measured AS m ON m.run = k.run
        LEFT JOIN communicating AS c ON c.run = k.run
    )
SELECT
    r.run,
    r.rank,
    r.position <= greatest(1, num_candidates) AS is_candidate,
    r.late_count,
    r.step_count,
    r.total_late_ns,
    r.max_late_ns,
    r.name,
    r.channel,
    r.is_long,
    r.reason_code,
    t.message AS reason
FROM reasoned AS r
LEFT JOIN messages AS t ON t.code = r.reason_code
ORDER BY r.run, r.rank
