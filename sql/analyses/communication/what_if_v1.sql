-- How long the capture and a step would take at best: without the late rank, with work in balance, with
-- transfers that take no time, without exposed communication, with perfect overlap.
--
-- The ranks are run again from their work between the starts and ends of matched collectives: a rank goes on
-- where its work is done and the last rank has come and the data has flowed. Unchanged, that gives every
-- start and end as recorded, to the nanosecond. What is changed is one thing at a time:
-- no late rank: ranks that `stragglers` names work no longer than the median of the others between the
-- same collectives; balanced: all work as long as their mean; no transfer: data flows at once, ranks still
-- wait for each other; no exposed communication: each rank only works; perfect overlap: the same, but
-- transfers take as long as they do. These are ceilings, not promises: work is taken to be what it was, also
-- where a rank idles until its host goes on.
--
-- Title: Step time at best
-- Shown: scenario, step_ns, replayed_step_ns, saved_ns, saved_pct, changed_ranks, reason
-- Status: stable
-- Since: 0.1
-- Scope: runs; all ranks of a run take part
-- Reference: what msprof-analyze and Holistic Trace Analysis simulate on one rank, over all of them
-- Needs: GPU activity of two ranks that communicate
-- Report: first 3
CREATE OR REPLACE MACRO what_if_v1(
    -- Runs to include; NULL means every run.
    runs VARCHAR[] := NULL
) AS TABLE
-- Columns:
--   run               VARCHAR         Run name.
--   scenario          VARCHAR         as recorded, no late rank, balanced, no transfer, no exposed communication, perfect overlap.
--   step_ns           BIGINT [ns]     Mean step of the host over the ranks, as recorded.
--   replayed_step_ns  BIGINT [ns]     What a step would take: shorter by the same share.
--   saved_pct         DOUBLE [%]      Share of the time that would be saved at most.
--   recorded_ns       BIGINT [ns]     From the first start to the last end of the matched collectives, of each recording.
--   replayed_ns       BIGINT [ns]     The same in this scenario.
--   saved_ns          BIGINT [ns]     What would be saved at most.
--   changed_ranks     VARCHAR         Ranks that are changed, as JSON; NULL for all.
--   rank_count        BIGINT [count]  Ranks that take part.
--   collective_count  BIGINT [count]  Collectives that they meet in.
--   reason_code       VARCHAR         Code of the reason in the table messages.
--   reason            VARCHAR         Why there is no answer.
WITH RECURSIVE
    works AS MATERIALIZED (
        SELECT w.*, dense_rank() OVER (ORDER BY w.run, w.rank, w.span) AS row_id
        FROM lib._rank_works(runs) AS w
    ),
    blocks AS MATERIALIZED (
        SELECT b.* FROM lib.rank_blocks(runs) AS b
    ),
    late AS MATERIALIZED (
        SELECT j.run, j.rank FROM lib.late_ranks(runs, 'blocks', 1.0) AS j WHERE j.is_late
    ),
    late_runs AS (
        SELECT l.run, to_json(list(l.rank ORDER BY l.rank))::VARCHAR AS changed_ranks FROM late AS l GROUP BY l.run
    ),
    trust AS (
        SELECT m.run, count_if(m.end_times_match) / count(*) AS share
        FROM matched_collectives AS m
        WHERE m.is_complete AND NOT m.is_startup AND NOT m.is_p2p AND lib.is_requested(runs, m.run)
        GROUP BY m.run
    ),
    compared AS (
        SELECT
            w.*, l.rank IS NOT NULL AS is_late,
            median(w.work_ns) FILTER (l.rank IS NULL) OVER same AS usual_ns,
            avg(w.work_ns) OVER same AS mean_ns
        FROM works AS w
        LEFT JOIN late AS l ON l.run = w.run AND l.rank = w.rank
        WINDOW same AS (PARTITION BY w.run, w.collective_id, w.is_end)
    ),
    scenarios AS (
        SELECT s.scenario, s.scenario_id
        FROM (VALUES ('as recorded', 1), ('no late rank', 2), ('balanced', 3), ('no transfer', 4)) AS s(scenario, scenario_id)
    ),
    -- A scenario of a run, and a rank of it, as numbers: what is joined in each round.
    nodes AS MATERIALIZED (
        SELECT
            (c.row_id << 3) + s.scenario_id AS line_id, dense_rank() OVER (ORDER BY c.run, c.span, s.scenario_id) AS world_id,
            s.scenario, c.run, c.rank, c.span, c.position, c.collective_id, c.rank_count, c.is_end, c.at_ns,
            CASE
                WHEN s.scenario = 'no late rank' AND c.is_late THEN least(c.work_ns, coalesce(c.usual_ns, c.work_ns))
                WHEN s.scenario = 'balanced' THEN round(c.mean_ns)
                ELSE c.work_ns
            END::BIGINT AS work_ns,
            CASE WHEN s.scenario = 'no transfer' THEN 0 ELSE c.lag_ns END AS lag_ns
        FROM compared AS c, scenarios AS s
        WHERE s.scenario <> 'no late rank' OR c.run IN (SELECT l.run FROM late AS l)
    ),
    -- A round: who can, goes on to the next point. A rank waits at an end until all have started. In time as it
    -- was recorded somebody always can; where nobody can (bounds that contradict each other) it ends unfinished.
    replayed AS (
        SELECT
            n.line_id, n.world_id, n.position, n.at_ns AS t_ns,
            [{collective_id: n.collective_id, rank_count: n.rank_count, start_ns: n.at_ns, last_ns: NULL::BIGINT}] AS open
        FROM nodes AS n
        WHERE n.position = 1
        UNION ALL
        (
            WITH
                parts AS (
                    SELECT r.line_id, r.world_id, unnest(r.open) AS part FROM replayed AS r
                ),
                complete AS (
                    SELECT p.world_id, p.part.collective_id AS collective_id, max(p.part.start_ns) AS last_ns
                    FROM parts AS p
                    WHERE p.part.last_ns IS NULL
                    GROUP BY p.world_id, p.part.collective_id
                    HAVING count(*) = any_value(p.part.rank_count)
                ),
                told AS (
                    SELECT
                        p.line_id,
                        list({
                            collective_id: p.part.collective_id, rank_count: p.part.rank_count,
                            start_ns: p.part.start_ns, last_ns: coalesce(p.part.last_ns, c.last_ns)
                        }) AS open
                    FROM parts AS p
                    LEFT JOIN complete AS c ON c.world_id = p.world_id AND c.collective_id = p.part.collective_id
                    GROUP BY p.line_id
                ),
                next AS (
                    SELECT
                        r.line_id, r.world_id, r.position, r.t_ns, coalesce(t.open, []) AS open,
                        n.is_end, n.collective_id, n.rank_count, n.lag_ns, r.t_ns + n.work_ns AS done_ns,
                        CASE WHEN n.is_end THEN list_filter(t.open, lambda x: x.collective_id = n.collective_id)[1].last_ns END AS last_ns
                    FROM replayed AS r
                    JOIN nodes AS n ON n.line_id = r.line_id AND n.position = r.position + 1
                    LEFT JOIN told AS t ON t.line_id = r.line_id
                )
            SELECT
                x.line_id,
                x.world_id,
                CASE WHEN x.is_end AND x.last_ns IS NULL THEN x.position ELSE x.position + 1 END AS position,
                CASE WHEN NOT x.is_end THEN x.done_ns WHEN x.last_ns IS NULL THEN x.t_ns ELSE greatest(x.done_ns, x.last_ns + x.lag_ns) END,
                CASE
                    WHEN NOT x.is_end
                        THEN list_append(
                            x.open,
                            {collective_id: x.collective_id, rank_count: x.rank_count, start_ns: x.done_ns, last_ns: NULL::BIGINT}
                        )
                    WHEN x.last_ns IS NULL THEN x.open
                    ELSE list_filter(x.open, lambda y: y.collective_id <> x.collective_id)
                END
            FROM next AS x
            QUALIFY bool_or(NOT x.is_end OR x.last_ns IS NOT NULL) OVER (PARTITION BY x.world_id)
        )
    ),
    ended AS (
        SELECT r.line_id, max(r.t_ns) AS t_ns, max(r.position) AS position FROM replayed AS r GROUP BY r.line_id
    ),
    extents AS MATERIALIZED (
        SELECT w.run, w.span, min(w.at_ns) AS from_ns, max(w.at_ns) AS to_ns
        FROM works AS w
        GROUP BY w.run, w.span
    ),
    lines AS (
        SELECT n.line_id, n.run, n.span, n.scenario, max(n.position) AS position FROM nodes AS n GROUP BY n.line_id, n.run, n.span, n.scenario
    ),
    rank_sums AS (
        SELECT
            w.run, w.span, w.rank, min(w.at_ns) AS from_ns, sum(w.work_ns)::BIGINT AS work_ns,
            sum(CASE WHEN w.is_end THEN w.transfer_ns ELSE 0 END)::BIGINT AS transfer_ns
        FROM works AS w
        GROUP BY w.run, w.span, w.rank
    ),
    answered AS (
        SELECT l.run, l.span, l.scenario, CASE WHEN bool_and(e.position = l.position) THEN max(e.t_ns) END AS to_ns
        FROM ended AS e
        JOIN lines AS l ON l.line_id = e.line_id
        GROUP BY l.run, l.span, l.scenario
        UNION ALL
        SELECT s.run, s.span, 'no exposed communication', max(s.from_ns + s.work_ns) FROM rank_sums AS s GROUP BY s.run, s.span
        UNION ALL
        SELECT s.run, s.span, 'perfect overlap', max(s.from_ns + greatest(s.work_ns, s.transfer_ns)) FROM rank_sums AS s GROUP BY s.run, s.span
    ),
    -- Recordings one behind the other: the time between them is nobody's.
    replays AS (
        SELECT a.run, a.scenario, CASE WHEN count(a.to_ns) = count(*) THEN sum(a.to_ns - x.from_ns)::BIGINT END AS replayed_ns
        FROM answered AS a
        JOIN extents AS x ON x.run = a.run AND x.span = a.span
        GROUP BY a.run, a.scenario
    ),
    recorded AS (
        SELECT x.run, sum(x.to_ns - x.from_ns)::BIGINT AS ns FROM extents AS x GROUP BY x.run
    ),
    counted AS (
        SELECT w.run, count(DISTINCT w.rank) AS rank_count, count(DISTINCT w.collective_id) AS n FROM works AS w GROUP BY w.run
    ),
    listed AS (
        SELECT n.scenario, n.position
        FROM (VALUES
            ('as recorded', 1), ('no late rank', 2), ('balanced', 3), ('no transfer', 4), ('no exposed communication', 5), ('perfect overlap', 6)
        ) AS n(scenario, position)
    ),
    step_means AS (
        SELECT p.run, round(avg(p.step_ns))::BIGINT AS step_ns
        FROM lib.scoped_steps(runs, NULL, NULL, false) AS p
        GROUP BY p.run
    ),
    told_runs AS (
        SELECT
            s.run, l.scenario, l.position, s.rank_count, s.n, x.ns AS recorded_ns, m.step_ns, d.changed_ranks,
            CASE WHEN t.share >= 0.8 THEN a.replayed_ns END AS replayed_ns,
            CASE
                WHEN coalesce(t.share, 0) < 0.8 THEN 'what_if.ends_disagree'
                WHEN a.run IS NULL THEN 'what_if.no_straggler'
                WHEN a.replayed_ns IS NULL THEN 'what_if.contradiction'
            END AS reason_code
        FROM counted AS s
        JOIN recorded AS x ON x.run = s.run
        CROSS JOIN listed AS l
        LEFT JOIN replays AS a ON a.run = s.run AND a.scenario = l.scenario
        LEFT JOIN trust AS t ON t.run = s.run
        LEFT JOIN late_runs AS d ON d.run = s.run AND l.scenario = 'no late rank'
        LEFT JOIN step_means AS m ON m.run = s.run
    )
SELECT
    t.run,
    t.scenario,
    t.step_ns,
    round(t.step_ns::HUGEINT * t.replayed_ns / nullif(t.recorded_ns, 0))::BIGINT AS replayed_step_ns,
    100 * (t.recorded_ns - t.replayed_ns) / nullif(t.recorded_ns, 0) AS saved_pct,
    t.recorded_ns,
    t.replayed_ns,
    t.recorded_ns - t.replayed_ns AS saved_ns,
    t.changed_ranks,
    t.rank_count,
    t.n AS collective_count,
    t.reason_code,
    m.message AS reason
FROM told_runs AS t
LEFT JOIN messages AS m ON m.code = t.reason_code
ORDER BY t.run, t.position
