-- Scenarios for the replay of each run, with the predicted step time and its interval, or the reason why there is no
-- prediction.
CREATE OR REPLACE MACRO lib.replayed_scenarios(
    runs
) AS TABLE
-- Columns:
--   run               VARCHAR         Run name.
--   scenario          VARCHAR         Name of the scenario.
--   position          INTEGER [1]     Position in the list of scenarios, from 1.
--   step_ns           BIGINT [ns]     Mean host step time over the ranks, as recorded.
--   replayed_step_ns  BIGINT [ns]     Predicted step time.
--   saved_pct         DOUBLE [%]      Share of recorded_ns that would be saved.
--   saved_low_pct     DOUBLE [%]      Lower end of the saving's interval, as a share of recorded_ns.
--   saved_high_pct    DOUBLE [%]      Upper end of the saving's interval, as a share of recorded_ns.
--   bound             VARCHAR         Kind of saving: upper bound, lower bound or estimate, as upper, lower or estimate; NULL without a saving.
--   recorded_ns       BIGINT [ns]     Total length of the recordings.
--   replayed_ns       BIGINT [ns]     Total length of the recordings in this scenario.
--   changed_ranks     VARCHAR         Ranks that the scenario changes, as JSON; NULL for all.
--   rank_count        BIGINT [count]  Number of ranks that take part.
--   collective_count  BIGINT [count]  Number of collectives that the ranks share.
--   reason_code       VARCHAR         Code of the reason why there is no prediction, why the saving is a lower bound, or why missing ranks make it too large.
WITH
    _met AS MATERIALIZED (
        SELECT
            m.run, m.rank, m.collective_id, m.is_p2p, m.in_elems, m.end_times_match, m.is_startup,
            m.is_complete AND NOT m.ended_before_last_start AND NOT m.on_host AS is_barrier
        FROM matched_collectives AS m
        WHERE lib.is_requested(runs, m.run)
    ),
    _counted AS (
        SELECT
            m.run, count(DISTINCT m.rank) AS rank_count, count(DISTINCT CASE WHEN m.is_barrier THEN m.collective_id END) AS collective_count,
            count_if(m.is_barrier AND m.end_times_match) / nullif(count_if(m.is_barrier), 0) AS trusted_share,
            avg(m.is_barrier::INTEGER) AS found_share
        FROM _met AS m
        GROUP BY m.run
        HAVING count(DISTINCT m.rank) > 1 AND count_if(m.is_barrier) > 0
    ),
    _sizes AS (
        SELECT u.run, avg(u.differs::INTEGER) > 0.02 AS differ
        FROM (
            SELECT m.run, m.collective_id, count(DISTINCT m.in_elems) > 1 AS differs
            FROM _met AS m
            WHERE m.is_barrier AND NOT m.is_p2p
            GROUP BY m.run, m.collective_id
        ) AS u
        GROUP BY u.run
    ),
    _lost AS (
        SELECT DISTINCT u.run FROM unrecorded_time AS u WHERE u.kind = 'lost' AND lib.is_requested(runs, u.run)
    ),
    _absent AS (
        SELECT k.run, max(k.world_size) > count(DISTINCT k.rank) AS lacks_ranks
        FROM ranks AS k
        WHERE lib.is_requested(runs, k.run)
        GROUP BY k.run
    ),
    _step_means AS (
        SELECT p.run, round(avg(p.step_ns))::BIGINT AS step_ns
        FROM lib.scoped_steps(runs, NULL, NULL, false) AS p
        GROUP BY p.run
    ),
    _listed AS (
        SELECT n.scenario, n.position
        FROM (VALUES
            ('as recorded', 1), ('no late rank', 2), ('balanced', 3), ('link at peers'' speed', 4), ('no transfer', 5),
            ('no exposed communication', 6), ('perfect overlap', 7), ('uniform', 8)
        ) AS n(scenario, position)
    ),
    _answered AS MATERIALIZED (
        SELECT r.* FROM replays AS r WHERE r.part_kind IS NULL AND lib.is_requested(runs, r.run)
    ),
    _scenarios AS (
        SELECT
            c.run, l.scenario, l.position, c.rank_count, c.collective_count, m.step_ns, a.changed_ranks,
            max(a.recorded_ns) OVER (PARTITION BY c.run) AS recorded_ns,
            CASE WHEN c.trusted_share >= 0.8 THEN a.replayed_ns END AS replayed_ns, a.low_ns, a.high_ns,
            CASE
                WHEN a.replayed_ns IS NULL OR l.scenario = 'as recorded' THEN NULL
                -- Communication that is unmatched or launched too early is not removed, so the saving may be larger.
                WHEN l.scenario IN ('no exposed communication', 'perfect overlap')
                    THEN CASE WHEN a.free_host_count = 0 AND o.run IS NULL AND c.found_share >= 0.98 THEN 'upper' ELSE 'lower' END
                -- Ranks wait for a missing rank in transfers, and the replay removes these waits with them.
                WHEN b.lacks_ranks AND l.scenario = 'no transfer' AND a.free_host_count = 0 AND o.run IS NULL AND c.found_share >= 0.98 THEN 'upper'
                WHEN b.lacks_ranks AND l.scenario IN ('no transfer', 'link at peers'' speed') THEN 'estimate'
                WHEN a.free_host_count > 0 OR o.run IS NOT NULL OR b.lacks_ranks OR c.found_share < 0.98 OR (l.scenario IN ('no late rank', 'balanced') AND s.differ) THEN 'lower'
                ELSE 'estimate'
            END AS bound,
            CASE
                WHEN c.trusted_share < 0.8 THEN 'what_if.ends_disagree'
                WHEN NOT EXISTS (FROM _answered AS n WHERE n.run = c.run) THEN 'what_if.not_replayed'
                WHEN a.run IS NULL AND l.scenario = 'no late rank' THEN 'what_if.no_straggler'
                WHEN a.run IS NULL AND l.scenario = 'link at peers'' speed' THEN 'what_if.no_slow_link'
                WHEN a.replayed_ns IS NULL OR l.scenario = 'as recorded' THEN NULL
                WHEN b.lacks_ranks AND l.scenario IN ('no transfer', 'link at peers'' speed') THEN 'what_if.waits_for_missing'
                -- Reasons for lower bounds.
                WHEN a.free_host_count > 0 THEN 'what_if.no_host_wait'
                WHEN o.run IS NOT NULL THEN 'what_if.lost_events'
                WHEN c.found_share < 0.98 THEN 'what_if.unmatched'
                WHEN l.scenario IN ('no exposed communication', 'perfect overlap') THEN NULL
                WHEN b.lacks_ranks THEN 'what_if.ranks_missing'
                WHEN l.scenario IN ('no late rank', 'balanced') AND s.differ THEN 'what_if.sizes_differ'
            END AS reason_code
        FROM _counted AS c
        CROSS JOIN _listed AS l
        LEFT JOIN _answered AS a ON a.run = c.run AND a.scenario = l.scenario
        LEFT JOIN _step_means AS m ON m.run = c.run
        LEFT JOIN _lost AS o ON o.run = c.run
        LEFT JOIN _absent AS b ON b.run = c.run
        LEFT JOIN _sizes AS s ON s.run = c.run
    )
SELECT
    t.run, t.scenario, t.position, t.step_ns,
    round(t.step_ns::HUGEINT * t.replayed_ns / nullif(t.recorded_ns, 0))::BIGINT AS replayed_step_ns,
    100::DOUBLE * (t.recorded_ns - t.replayed_ns) / nullif(t.recorded_ns, 0) AS saved_pct,
    CASE WHEN t.replayed_ns IS NOT NULL THEN 100::DOUBLE * t.low_ns / nullif(t.recorded_ns, 0) END AS saved_low_pct,
    CASE WHEN t.replayed_ns IS NOT NULL THEN 100::DOUBLE * t.high_ns / nullif(t.recorded_ns, 0) END AS saved_high_pct,
    CASE WHEN t.replayed_ns IS NOT NULL THEN t.bound END AS bound,
    t.recorded_ns, t.replayed_ns, t.changed_ranks, t.rank_count, t.collective_count, t.reason_code
FROM _scenarios AS t
