-- Straggler candidates: how often each rank is among the last to start the collective of a step.
--
-- The collective is chosen as in straggler_metric. In each step, the last num_candidates ranks to start the collective
-- are counted. The ranks with the highest counts are candidates; if counts are equal, the rank with the higher total
-- lateness is preferred. Every rank with events has a row; reason explains why a rank cannot be judged. Start times are
-- as recorded, without the correction of clocks that collective_waits makes. A rank that starts last often need not be
-- the one that others wait for; straggler_verdict is the verdict of the analysis stragglers, which compares the work
-- of the ranks.
--
-- Title: Ranks that start a collective last
-- Shown: rank, is_candidate, late_count, step_count, total_late_ns, max_late_ns, straggler_verdict, name, reason
-- Status: stable
-- Since: 0.1
-- Reference: HTA get_potential_stragglers
-- Needs: GPU activity of two ranks that communicate
-- Chart:
--   mark = "ranks"
--   title = "Ranks that start a collective last"
--   notes = [
--     "Number of steps in which a rank is among the last to start the collective with the longest waits.",
--     "HTA's rule always names some ranks, so it gives no verdict; for one, see the chart “Stragglers”.",
--   ]
--   empty = "No rank is late."
--   reason = "reason"
--   value = "late_count"
--   measure = "Steps among the last"
--   tooltip.step_count = "Steps"
--   tooltip.total_late_ns = "Total delay after the first rank"
--   tooltip.name = "Collective"
--   tooltip.reason = "Not measured because"
CREATE OR REPLACE MACRO potential_stragglers_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false,
    -- Number of candidates; at least 1.
    num_candidates BIGINT := 2,
    -- Minimum kernel duration, as a share of the mean step duration; if no two ranks share a kernel that long, shorter
    -- kernels are used.
    min_share DOUBLE := 0.01,
    -- Whether to use only the last long kernel of each rank and step, as HTA does.
    last_only BOOLEAN := false
) AS TABLE
-- Columns:
--   run            VARCHAR         Run name.
--   rank           INTEGER         Rank of the process.
--   is_candidate   BOOLEAN         Whether the rank is a potential straggler; NULL if it cannot be judged.
--   late_count     BIGINT [count]  Number of steps in which the rank was among the last to start.
--   step_count     BIGINT [count]  Number of steps in which the rank ran the collective.
--   total_late_ns  BIGINT [ns]     Total delay after the first rank's start.
--   max_late_ns    BIGINT [ns]     Longest delay after the first rank's start.
--   name           VARCHAR         Name of the kernel.
--   channel        VARCHAR         Process group of the kernel, as in group 0, or its stream if the trace names no group, as in stream 7; stream 7 to 20 if ranks number the stream differently.
--   is_long        BOOLEAN         Whether kernels of at least min_share were found; false if shorter kernels were used.
--   straggler_verdict  VARCHAR     Verdict of the analysis stragglers on the rank: straggler, suspected, intermittent, none or unknown.
--   reason_code    VARCHAR         Code of the reason in the table messages.
--   reason         VARCHAR         Why the rank cannot be judged; NULL otherwise.
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
    v.verdict AS straggler_verdict,
    r.reason_code,
    t.message AS reason
FROM reasoned AS r
LEFT JOIN lib.rank_verdicts(runs) AS v ON v.run = r.run AND v.rank = r.rank
LEFT JOIN messages AS t ON t.code = r.reason_code
ORDER BY r.run, r.rank
