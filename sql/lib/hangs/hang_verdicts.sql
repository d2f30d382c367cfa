-- Verdict on each stuck process group and each stuck pair of sender and receiver, from Flight Recorder dumps.
--
-- A rank blocks its group if it never entered the stuck operation, entered a different one, or did not start it. If
-- every blocking rank only waits in a different stuck group, the hang of the group follows from the hang of that one. The
-- header of the analysis hang states the rules.
CREATE OR REPLACE MACRO lib.hang_verdicts(
    runs
) AS TABLE
-- Columns:
--   run                VARCHAR      Run name.
--   item_key           VARCHAR      Key of the group, or of the group and the pair of ranks.
--   channel            VARCHAR      Description and name of the group, and the pair.
--   pg_name            VARCHAR      Process group name.
--   is_p2p             BOOLEAN      Whether the operation is a send or a receive.
--   collective_seq_id  BIGINT       Number of the stuck collective in the group; NULL for sends and receives.
--   kind               VARCHAR      missing, mismatch, deadlock, not_started, no_dump, unfinished or undecided.
--   is_root            BOOLEAN      Whether the cause is in this group.
--   is_certain         BOOLEAN      Whether the group hangs; false if a healthy job may have dumps like these.
--   is_recent          BOOLEAN      Whether the dumps were written so soon that ranks may merely be on their way.
--   has_ended          BOOLEAN      Whether the operation ended on all ranks that entered it, and ranks are missing.
--   is_alone           BOOLEAN      Whether a single rank knows the group, and no dump states its ranks.
--   has_stated_ranks   BOOLEAN      Whether the ranks of the group are known.
--   circle_key         VARCHAR      Key of the deadlock that the group is part of; NULL if it is in none.
--   member_list        INTEGER[]    Ranks of the group.
--   missing            INTEGER[]    Ranks that never entered the operation; NULL if there are none.
--   waiting            INTEGER[]    Ranks that entered the operation, where it has not ended; NULL if there are none.
--   different          INTEGER[]    Ranks that entered a different operation; NULL if there are none.
--   scheduled          INTEGER[]    Ranks whose device did not start the operation; NULL if there are none.
--   finished           INTEGER[]    Ranks on which the operation ended; NULL if there are none.
--   undumped           INTEGER[]    Ranks without a complete dump; NULL if there are none.
--   culprit_list       INTEGER[]    Ranks that block the others and wait in no other group; NULL if there are none.
--   suspect_list       INTEGER[]    Ranks that block another group and may be missing in this one; NULL if there are none.
--   waits_for          VARCHAR      Groups from whose hang this one follows, or probably follows.
--   op_text            VARCHAR      Operation that most waiting ranks entered.
--   different_op_text  VARCHAR      Operation that the first of the different ranks entered.
--   since_ns           BIGINT [ns]  Unix time when the first rank entered the operation.
--   first_rank         INTEGER      Lowest rank that entered the operation.
--   stack_id           BIGINT       Stack of its call.
--   stands_at          VARCHAR      Numbers of the last collectives of the ranks on which the operation ended.
--   missing_last_id    BIGINT       Number of the last collective of the missing rank that is furthest behind.
--   written_ns         BIGINT [ns]  Unix time when the first dump of a rank of the group was written; NULL if unknown.
--   pause_ns           BIGINT [ns]  Longest time between two operations of a rank of the run.
--   mismatch_id        BIGINT       Number of the group's first collective at which ranks entered different operations; NULL if there is none.
--   mismatch_rank      INTEGER      First rank that differs there.
--   mismatch_value     VARCHAR      What that rank entered.
--   usual_value        VARCHAR      What most ranks entered.
WITH RECURSIVE
    _parts AS MATERIALIZED (
        SELECT c.* FROM lib.stuck_collectives(runs) AS c
        UNION ALL
        SELECT m.* FROM lib._stuck_messages(runs) AS m
    ),
    _times AS MATERIALIZED (
        SELECT d.* FROM lib._dump_times(runs) AS d
    ),
    _items AS MATERIALIZED (
        SELECT
            p.run, p.item_key, any_value(p.channel) AS channel, any_value(p.pg_name) AS pg_name, any_value(p.is_p2p) AS is_p2p,
            any_value(p.collective_seq_id) AS collective_seq_id,
            list(p.rank ORDER BY p.rank) AS member_list,
            list(p.rank ORDER BY p.rank) FILTER (p.role = 'missing') AS missing,
            list(p.rank ORDER BY p.rank) FILTER (p.role IN ('waiting', 'scheduled')) AS waiting,
            list(p.rank ORDER BY p.rank) FILTER (p.role = 'different') AS different,
            list(p.rank ORDER BY p.rank) FILTER (p.role = 'scheduled') AS scheduled,
            list(p.rank ORDER BY p.rank) FILTER (p.role IN ('finished', 'ended')) AS finished,
            list(p.rank ORDER BY p.rank) FILTER (p.is_later) AS later,
            array_to_string(list_sort(list(DISTINCT p.last_id) FILTER (p.role IN ('finished', 'ended'))), ', ') AS stands_at,
            min(p.last_id) FILTER (p.role = 'missing') AS missing_last_id,
            count(*) = 1 AND NOT any_value(p.is_p2p) AND any_value(p.item_key) NOT LIKE '% [%' AS is_alone,
            bool_or(p.role = 'missing') AND NOT bool_or(p.role IN ('waiting', 'scheduled', 'different')) AS has_ended,
            list(p.rank ORDER BY p.rank) FILTER (p.role = 'undumped') AS undumped,
            coalesce(mode(p.op_text ORDER BY p.rank) FILTER (p.role = 'waiting'), mode(p.op_text ORDER BY p.rank)) AS op_text,
            min(p.created_ns) FILTER (p.role IN ('waiting', 'scheduled', 'different', 'ended')) AS since_ns,
            min(p.rank) FILTER (p.role IN ('waiting', 'scheduled', 'different', 'ended')) AS first_rank,
            arg_min(p.stack_id, p.rank) FILTER (p.role IN ('waiting', 'scheduled', 'different', 'ended')) AS stack_id,
            arg_min(p.op_text, p.rank) FILTER (p.role = 'different') AS different_op_text,
            -- For gloo, only the ranks of the default group are known.
            any_value(p.is_p2p) OR any_value(p.item_key) LIKE '% [%' OR any_value(p.pg_desc) = 'default_pg' AS has_stated_ranks,
            count_if(p.role IN ('missing', 'scheduled', 'different')) AS blocker_count,
            min(d.written_ns) AS written_ns, max(d.pause_ns) AS pause_ns, max(d.timeout_ns) AS timeout_ns
        FROM _parts AS p
        LEFT JOIN _times AS d ON d.run = p.run AND d.rank = p.rank
        GROUP BY p.run, p.item_key
    ),
    -- A missing rank may be waiting in any group; a rank that entered the operation may be waiting only in operations
    -- that its process enqueued earlier.
    _edges AS MATERIALIZED (
        SELECT DISTINCT b.run, b.item_key, b.rank, w.item_key AS to_key
        FROM _parts AS b
        JOIN _items AS i ON i.run = b.run AND i.item_key = b.item_key
        JOIN _parts AS w ON w.run = b.run AND w.rank = b.rank AND w.item_key <> b.item_key AND w.role IN ('waiting', 'scheduled', 'different')
        WHERE b.role = 'missing' OR (w.record_id < b.record_id AND (b.role = 'scheduled' OR (b.role = 'waiting' AND i.blocker_count = 0)))
    ),
    _reached AS (
        SELECT DISTINCT e.run, e.item_key, e.to_key FROM _edges AS e
        UNION
        SELECT r.run, r.item_key, e.to_key
        FROM _reached AS r
        JOIN _edges AS e ON e.run = r.run AND e.item_key = r.to_key
    ),
    _circles AS (
        SELECT r.run, r.item_key, min(r.to_key) AS circle_key
        FROM _reached AS r
        JOIN _reached AS b ON b.run = r.run AND b.item_key = r.to_key AND b.to_key = r.item_key
        GROUP BY r.run, r.item_key
    ),
    _holders AS MATERIALIZED (
        SELECT p.run, p.item_key, list(p.rank ORDER BY p.rank) AS culprit_list
        FROM _parts AS p
        LEFT JOIN (SELECT DISTINCT e.run, e.item_key, e.rank FROM _edges AS e) AS e ON e.run = p.run AND e.item_key = p.item_key AND e.rank = p.rank
        LEFT JOIN _circles AS c ON c.run = p.run AND c.item_key = p.item_key
        JOIN _items AS i ON i.run = p.run AND i.item_key = p.item_key
        WHERE
            p.role IN ('missing', 'scheduled', 'different') AND (p.is_later OR NOT i.has_ended) AND (e.rank IS NULL OR p.role = 'different' OR c.item_key IS NOT NULL)
        GROUP BY p.run, p.item_key
    ),
    -- Drop the culprits of a group if they also block the groups that this group waits for.
    _culprits AS (
        SELECT h.*
        FROM _holders AS h
        LEFT JOIN _circles AS c ON c.run = h.run AND c.item_key = h.item_key
        LEFT JOIN _reached AS r ON r.run = h.run AND r.item_key = h.item_key
        LEFT JOIN _holders AS o ON o.run = r.run AND o.item_key = r.to_key
        GROUP BY ALL
        HAVING any_value(c.item_key) IS NOT NULL OR NOT list_has_all(coalesce(flatten(list(o.culprit_list) FILTER (o.culprit_list IS NOT NULL)), []), h.culprit_list)
    ),
    _followed AS (
        SELECT e.run, e.item_key, string_agg(DISTINCT i.channel, ', ' ORDER BY i.channel) AS waits_for
        FROM _edges AS e
        JOIN _items AS i ON i.run = e.run AND i.item_key = e.to_key
        GROUP BY e.run, e.item_key
    ),
    _mismatches AS (
        SELECT
            m.run, m.group_key, min(m.collective_seq_id) AS mismatch_id, arg_min(m.rank, (m.collective_seq_id, m.rank)) AS mismatch_rank,
            arg_min(m.value, (m.collective_seq_id, m.rank)) AS mismatch_value, arg_min(m.majority_value, (m.collective_seq_id, m.rank)) AS usual_value
        FROM lib.dump_mismatches(runs) AS m
        GROUP BY m.run, m.group_key
    ),
    _linked AS MATERIALIZED (
        SELECT
            i.*, c.item_key IS NOT NULL AS is_circle, c.circle_key, u.culprit_list, f.waits_for, x.mismatch_id, x.mismatch_rank, x.mismatch_value, x.usual_value,
            i.waiting IS NOT NULL AND i.different IS NULL AND (i.missing IS NOT NULL OR i.scheduled IS NOT NULL OR i.undumped IS NOT NULL)
            AND (f.waits_for IS NULL OR u.culprit_list IS NOT NULL OR c.item_key IS NOT NULL)
            AND coalesce(i.written_ns - i.since_ns < least(i.timeout_ns, greatest(3::HUGEINT * i.pause_ns, 500_000_000)), false) AS is_recent
        FROM _items AS i
        LEFT JOIN _culprits AS u ON u.run = i.run AND u.item_key = i.item_key
        LEFT JOIN _circles AS c ON c.run = i.run AND c.item_key = i.item_key
        LEFT JOIN _followed AS f ON f.run = i.run AND f.item_key = i.item_key
        LEFT JOIN _mismatches AS x ON x.run = i.run AND x.group_key = i.item_key AND x.mismatch_id <= i.collective_seq_id
    ),
    _judged AS MATERIALIZED (
        SELECT
            i.* REPLACE (CASE WHEN NOT i.is_recent THEN i.culprit_list END AS culprit_list),
            NOT i.is_recent
            AND (i.culprit_list IS NOT NULL OR i.is_circle OR (i.waits_for IS NULL AND i.blocker_count = 0 AND i.waiting IS NOT NULL)) AS is_root,
            CASE
                WHEN i.is_recent THEN 'undecided'
                WHEN i.has_ended AND i.later IS NULL AND i.waits_for IS NULL THEN 'undecided'
                WHEN i.waiting IS NULL AND i.different IS NULL AND i.missing IS NULL THEN 'undecided'
                WHEN i.different IS NOT NULL THEN 'mismatch'
                WHEN i.is_circle THEN 'deadlock'
                WHEN i.missing IS NOT NULL THEN 'missing'
                WHEN i.scheduled IS NOT NULL THEN 'not_started'
                WHEN i.undumped IS NOT NULL THEN 'no_dump'
                ELSE 'unfinished'
            END AS kind
        FROM _linked AS i
    ),
    -- A group that waits for one that hangs does so too.
    _following AS (
        SELECT DISTINCT r.run, r.item_key
        FROM _reached AS r
        JOIN _judged AS j ON j.run = r.run AND j.item_key = r.to_key
        WHERE j.is_root AND j.kind NOT IN ('unfinished', 'undecided')
    ),
    _suspects AS (
        SELECT j.run, j.item_key, j.channel, unnest(coalesce(j.culprit_list, CASE WHEN j.kind = 'no_dump' THEN j.undumped END)) AS rank
        FROM _judged AS j
        WHERE j.is_root
    ),
    -- Groups that look complete only because no dump states their ranks.
    _explained AS (
        SELECT
            j.run, j.item_key, list(DISTINCT s.rank ORDER BY s.rank) AS suspect_list, string_agg(DISTINCT s.channel, ', ' ORDER BY s.channel) AS follows_from
        FROM _judged AS j
        JOIN _suspects AS s ON s.run = j.run AND s.item_key <> j.item_key AND NOT list_contains(j.member_list, s.rank)
        WHERE j.is_root AND j.kind = 'unfinished' AND NOT j.has_stated_ranks
        GROUP BY j.run, j.item_key
    ),
    _decided AS (
        SELECT
            j.* REPLACE (j.is_root AND e.item_key IS NULL AS is_root, coalesce(e.follows_from, j.waits_for) AS waits_for), e.suspect_list,
            CASE
                WHEN (j.is_root AND e.item_key IS NULL) OR j.kind = 'undecided' THEN j.kind NOT IN ('unfinished', 'undecided')
                ELSE w.item_key IS NOT NULL OR e.item_key IS NOT NULL
            END AS is_certain
        FROM _judged AS j
        LEFT JOIN _explained AS e ON e.run = j.run AND e.item_key = j.item_key
        LEFT JOIN _following AS w ON w.run = j.run AND w.item_key = j.item_key
    )
SELECT
    d.run,
    d.item_key,
    d.channel,
    d.pg_name,
    d.is_p2p,
    d.collective_seq_id,
    d.kind,
    d.is_root,
    d.is_certain,
    d.is_recent,
    d.has_ended,
    d.is_alone,
    d.has_stated_ranks,
    d.circle_key,
    d.member_list,
    d.missing,
    d.waiting,
    d.different,
    d.scheduled,
    d.finished,
    d.undumped,
    d.culprit_list,
    d.suspect_list,
    d.waits_for,
    d.op_text,
    d.different_op_text,
    d.since_ns,
    d.first_rank,
    d.stack_id,
    d.stands_at,
    d.missing_last_id,
    d.written_ns,
    d.pause_ns,
    d.mismatch_id,
    d.mismatch_rank,
    d.mismatch_value,
    d.usual_value
FROM _decided AS d
-- What the missing dumps may say is of no interest where something hangs.
QUALIFY NOT (d.kind = 'undecided' AND d.missing IS NULL AND bool_or(d.is_certain) OVER (PARTITION BY d.run))
