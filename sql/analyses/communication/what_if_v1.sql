-- How long the capture and a step would take without the straggler, with work in balance, with links at their peers'
-- speed, with transfers that take no time, without exposed communication, with perfect overlap, and in uniform.
--
-- All ranks are run again on what their operations depend on: the order of the host's launches, calls in which the host waits
-- for the device, streams, and collectives, in which ranks wait for each other. Unchanged, that gives the recorded times. One
-- thing is changed at a time.
-- no late rank: operations of ranks that `stragglers` names (straggler, intermittent; without these, suspected) and the work of their
-- hosts take the median of the same on the other ranks of the stage. balanced: everything takes the mean of the ranks of a stage. no transfer:
-- data flow at once, ranks still wait for each other. link at peers' speed: transfers of slow channels take as long as those of
-- the same size elsewhere. no exposed communication: each rank only works. perfect overlap: the same, but transfers take as long
-- as they do. uniform: each operation takes the mean of its name over ranks and steps, each transfer the median; recorded_ns over
-- replayed_ns is the slowdown S of "Understanding stragglers in large model training using what-if analysis"; `slowdown_parts`
-- divides it.
--
-- Which stream waits for which, and where no waiting calls are recorded where the host waited, is inferred. If a host that
-- launches work was never seen to wait for its device, launches stay as early as they were and savings are at least as large as
-- stated. The interval is that of the mean over steps.
--
-- Title: Step time in other circumstances
-- Shown: scenario, step_ns, replayed_step_ns, saved_ns, saved_pct, bound, changed_ranks, reason
-- Status: stable
-- Since: 0.1
-- Scope: runs; all ranks of a run take part
-- Reference: ByteDance-Seed/StragglerAnalysis; what msprof-analyze and Holistic Trace Analysis simulate on one rank
-- Needs: GPU activity of two ranks that communicate
-- Report: first 3
CREATE OR REPLACE MACRO what_if_v1(
    -- Runs to include; NULL means every run.
    runs VARCHAR[] := NULL
) AS TABLE
-- Columns:
--   run               VARCHAR         Run name.
--   scenario          VARCHAR         as recorded, no late rank, balanced, link at peers' speed, no transfer, no exposed communication, perfect overlap, uniform.
--   step_ns           BIGINT [ns]     Mean step of the host over the ranks, as recorded.
--   replayed_step_ns  BIGINT [ns]     What a step would take: shorter by the same share.
--   saved_pct         DOUBLE [%]      Share of recorded_ns that would be saved.
--   saved_low_pct     DOUBLE [%]      Least share of recorded_ns: lower end of the 95 % interval over the steps; NULL for fewer than two steps.
--   saved_high_pct    DOUBLE [%]      Largest share of recorded_ns: upper end of the interval.
--   bound             VARCHAR         upper: at best; lower: at least, since the trace lacks events or ranks, data sizes differ or no host was seen to wait; NULL: an estimate.
--   recorded_ns       BIGINT [ns]     From the start of the first step to the last end on a device, of each recording.
--   replayed_ns       BIGINT [ns]     The same in this scenario.
--   saved_ns          BIGINT [ns]     What would be saved.
--   changed_ranks     VARCHAR         Ranks that are changed, as JSON; NULL for all.
--   rank_count        BIGINT [count]  Ranks that take part.
--   collective_count  BIGINT [count]  Collectives that they meet in.
--   reason_code       VARCHAR         Code of the reason in the table messages.
--   reason            VARCHAR         Why there is no answer.
WITH
    met AS MATERIALIZED (
        SELECT
            m.run, m.rank, m.collective_id, m.is_p2p, m.in_elems, m.end_times_match, m.is_startup,
            m.is_complete AND NOT m.ended_before_last_start AND NOT m.on_host AS is_barrier
        FROM matched_collectives AS m
        WHERE lib.is_requested(runs, m.run)
    ),
    counted AS (
        SELECT
            m.run, count(DISTINCT m.rank) AS rank_count, count(DISTINCT CASE WHEN m.is_barrier THEN m.collective_id END) AS collective_count,
            count_if(m.is_barrier AND m.end_times_match) / nullif(count_if(m.is_barrier), 0) AS trusted_share,
            avg(m.is_barrier::INTEGER) AS found_share
        FROM met AS m
        GROUP BY m.run
        HAVING count(DISTINCT m.rank) > 1 AND count_if(m.is_barrier) > 0
    ),
    sizes AS (
        SELECT u.run, avg(u.differs::INTEGER) > 0.02 AS differ
        FROM (
            SELECT m.run, m.collective_id, count(DISTINCT m.in_elems) > 1 AS differs
            FROM met AS m
            WHERE m.is_barrier AND NOT m.is_p2p
            GROUP BY m.run, m.collective_id
        ) AS u
        GROUP BY u.run
    ),
    lost AS (
        SELECT DISTINCT u.run FROM unrecorded_time AS u WHERE u.kind = 'lost' AND lib.is_requested(runs, u.run)
    ),
    absent AS (
        SELECT k.run, max(k.world_size) > count(DISTINCT k.rank) AS lacks_ranks
        FROM ranks AS k
        WHERE lib.is_requested(runs, k.run)
        GROUP BY k.run
    ),
    step_means AS (
        SELECT p.run, round(avg(p.step_ns))::BIGINT AS step_ns
        FROM lib.scoped_steps(runs, NULL, NULL, false) AS p
        GROUP BY p.run
    ),
    listed AS (
        SELECT n.scenario, n.position
        FROM (VALUES
            ('as recorded', 1), ('no late rank', 2), ('balanced', 3), ('link at peers'' speed', 4), ('no transfer', 5),
            ('no exposed communication', 6), ('perfect overlap', 7), ('uniform', 8)
        ) AS n(scenario, position)
    ),
    answered AS MATERIALIZED (
        SELECT r.* FROM replays AS r WHERE r.part_kind IS NULL AND lib.is_requested(runs, r.run)
    ),
    scenarios AS (
        SELECT
            c.run, l.scenario, l.position, c.rank_count, c.collective_count, m.step_ns, a.changed_ranks,
            max(a.recorded_ns) OVER (PARTITION BY c.run) AS recorded_ns,
            CASE WHEN c.trusted_share >= 0.8 THEN a.replayed_ns END AS replayed_ns, a.low_ns, a.high_ns,
            CASE
                WHEN a.replayed_ns IS NULL OR l.scenario = 'as recorded' THEN NULL
                WHEN l.scenario IN ('no exposed communication', 'perfect overlap')
                    THEN CASE WHEN a.free_host_count = 0 AND o.run IS NULL AND c.found_share >= 0.98 THEN 'upper' END
                WHEN a.free_host_count > 0 OR o.run IS NOT NULL OR b.lacks_ranks OR c.found_share < 0.98 OR (l.scenario IN ('no late rank', 'balanced') AND s.differ) THEN 'lower'
            END AS bound,
            CASE
                WHEN c.trusted_share < 0.8 THEN 'what_if.ends_disagree'
                WHEN NOT EXISTS (FROM answered AS n WHERE n.run = c.run) THEN 'what_if.not_replayed'
                WHEN a.run IS NULL AND l.scenario = 'no late rank' THEN 'what_if.no_straggler'
                WHEN a.run IS NULL AND l.scenario = 'link at peers'' speed' THEN 'what_if.no_slow_link'
            END AS reason_code
        FROM counted AS c
        CROSS JOIN listed AS l
        LEFT JOIN answered AS a ON a.run = c.run AND a.scenario = l.scenario
        LEFT JOIN step_means AS m ON m.run = c.run
        LEFT JOIN lost AS o ON o.run = c.run
        LEFT JOIN absent AS b ON b.run = c.run
        LEFT JOIN sizes AS s ON s.run = c.run
    )
SELECT
    t.run,
    t.scenario,
    t.step_ns,
    round(t.step_ns::HUGEINT * t.replayed_ns / nullif(t.recorded_ns, 0))::BIGINT AS replayed_step_ns,
    100 * (t.recorded_ns - t.replayed_ns) / nullif(t.recorded_ns, 0) AS saved_pct,
    CASE WHEN t.replayed_ns IS NOT NULL THEN 100 * t.low_ns / nullif(t.recorded_ns, 0) END AS saved_low_pct,
    CASE WHEN t.replayed_ns IS NOT NULL THEN 100 * t.high_ns / nullif(t.recorded_ns, 0) END AS saved_high_pct,
    CASE WHEN t.replayed_ns IS NOT NULL THEN t.bound END AS bound,
    t.recorded_ns,
    t.replayed_ns,
    t.recorded_ns - t.replayed_ns AS saved_ns,
    t.changed_ranks,
    t.rank_count,
    t.collective_count,
    t.reason_code,
    m.message AS reason
FROM scenarios AS t
LEFT JOIN messages AS m ON m.code = t.reason_code
ORDER BY t.run, t.position
