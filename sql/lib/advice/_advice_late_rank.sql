-- Advice: a straggler delays the other ranks, in all steps or in some, and its cause. Several stragglers are named
-- together, and with their host if they are all of its ranks.
--
-- The saving is the larger of two times, the straggler's own work beyond that of its peers and the additional wait of these
-- peers, but at most the time by which it arrives after the first rank in its collectives.
CREATE OR REPLACE MACRO lib._advice_late_rank(
    -- Name of a relation with the columns of lib.step_sums.
    spans,
    -- Name of a relation with the columns of lib.late_ranks.
    verdicts,
    -- Name of a relation with the columns of lib.lateness_causes.
    causes,
    ranks
) AS TABLE
-- Columns: those of _advice_by_rule.
WITH
    _hosts AS (
        SELECT k.run, k.host_name, count(*) AS rank_count, count(*) < sum(count(*)) OVER (PARTITION BY k.run) AS is_one_of_several
        FROM ranks AS k
        WHERE k.host_name IS NOT NULL
        GROUP BY k.run, k.host_name
    ),
    _stragglers AS (
        SELECT
            v.run, count(*) AS rank_count, list(v.rank ORDER BY v.rank) AS ranks,
            CASE WHEN count(DISTINCT k.host_name) = 1 AND count(k.host_name) = count(*) THEN any_value(k.host_name) END AS host_name
        FROM query_table(verdicts) AS v
        JOIN ranks AS k ON k.run = v.run AND k.rank = v.rank
        WHERE v.verdict = 'straggler'
        GROUP BY v.run
        HAVING count(*) > 1
    ),
    -- At most eight ranks are listed.
    _groups AS (
        SELECT
            s.run, CASE WHEN h.is_one_of_several THEN s.host_name END AS host_name,
            array_to_string(s.ranks[:8], ', ') || CASE WHEN s.rank_count > 8 THEN ' and ' || (s.rank_count - 8) || ' more' ELSE '' END AS ranks
        FROM _stragglers AS s
        LEFT JOIN _hosts AS h ON h.run = s.run AND h.host_name = s.host_name AND h.rank_count = s.rank_count
    ),
    -- If no operator launched the kernel, the subject is the kernel: show its short name.
    _causes AS (
        SELECT c.run, c.rank, c.cause, CASE WHEN c.subject = c.kernel THEN lib.short_name(c.subject) ELSE c.subject END AS subject
        FROM query_table(causes) AS c
    )
SELECT
    j.run, j.rank, 'late_rank' AS rule, 'rank ' || j.rank AS subject, j.late_step_count AS event_count, j.late_ns AS affected_ns,
    -- The loss is measured as a share of the compared time and scaled to the recorded step time.
    round(least(1, j.most_cost_ns / j.window_ns) * s.recorded_ns)::BIGINT AS saved_ns,
    CASE j.verdict WHEN 'straggler' THEN 'high' ELSE 'medium' END AS confidence, NULL::BIGINT AS event_id,
    CASE
        WHEN j.is_late AND g.host_name IS NOT NULL THEN lib.message(
            'advice.late_rank_host',
            {'ranks': g.ranks, 'host': g.host_name, 'rank': j.rank, 'cause': c.cause, 'has_subject': c.subject IS NOT NULL, 'subject': coalesce(c.subject, '')}
        )
        WHEN j.is_late AND g.run IS NOT NULL THEN lib.message(
            'advice.late_rank_group',
            {'ranks': g.ranks, 'rank': j.rank, 'cause': c.cause, 'has_subject': c.subject IS NOT NULL, 'subject': coalesce(c.subject, '')}
        )
        -- The step times of a rank may vary too much to find one step late, but not all of them together.
        WHEN j.late_step_count > 0 THEN lib.message(
            'advice.late_rank',
            {
                'rank': j.rank, 'is_certain': j.is_late, 'late_step_count': j.late_step_count, 'step_count': j.step_count, 'cause': c.cause,
                'has_subject': c.subject IS NOT NULL, 'subject': coalesce(c.subject, '')
            }
        )
        ELSE lib.message(
            'advice.late_rank_in_sum',
            {
                'rank': j.rank, 'is_certain': j.is_late, 'step_count': j.step_count, 'cause': c.cause, 'has_subject': c.subject IS NOT NULL,
                'subject': coalesce(c.subject, '')
            }
        )
    END AS message,
    format('FROM stragglers_v1(runs := [{}], ranks := [{}])', lib.sql_literal(j.run), j.rank) AS evidence_sql,
    'stragglers' AS next_analysis
FROM query_table(verdicts) AS j
-- A rank without steps in scope may still delay the others.
LEFT JOIN query_table(spans) AS s ON s.run = j.run AND s.rank = j.rank
LEFT JOIN _groups AS g ON g.run = j.run
LEFT JOIN _causes AS c ON c.run = j.run AND c.rank = j.rank
WHERE j.verdict IN ('straggler', 'intermittent') AND lib.is_requested(ranks, j.rank)
