-- State of each rank at the collective in which a process group hangs or may hang, from Flight Recorder dumps.
--
-- That an operation ended does not say that it succeeded: after a time-out or an error it ends as well. It has finished
-- if all ranks entered it. The collective of a group is the first one that a rank entered and that has not ended, or
-- that ended without a rank of the group, or else the first one that ranks entered differently. The root of a broadcast
-- or scatter and the senders of a reduce or gather may be ahead, so only operations that need all ranks end without
-- one for certain. A rank without the operation may also have written its dump before the others. It is excluded if all other
-- ranks stand at the same number, and either the rank entered something after the operation had ended on another
-- rank, or that rank is missing in an operation that ended on this one.
--
-- An operation that has not ended, although a later one of its rank and group has ended or, except for NCCL, although it
-- has ended on another rank and all ranks entered it, has ended too: the recorder was read before it noticed.
--
-- A rank is waiting (entered, not ended), scheduled (entered, but not started on its device while others did),
-- different (entered a different operation), missing (never entered), ended (without a missing rank), finished, or
-- undumped (no dump, or a damaged dump that may have lost the operation).
CREATE OR REPLACE MACRO lib.stuck_collectives(
    runs
) AS TABLE
-- Columns:
--   run                VARCHAR      Run name.
--   item_key           VARCHAR      Key of the group.
--   channel            VARCHAR      Description and name of the group.
--   pg_name            VARCHAR      Process group name.
--   pg_desc            VARCHAR      Process group description.
--   is_p2p             BOOLEAN      Always false.
--   collective_seq_id  BIGINT       Number of the collective in the group.
--   rank               INTEGER      Rank of the group.
--   role               VARCHAR      Role of the rank: waiting, scheduled, different, missing, ended, finished or undumped.
--   record_id          BIGINT       Entry of the rank in fr_entries; NULL if it has none.
--   op_text            VARCHAR      Operation that the rank entered.
--   created_ns         BIGINT [ns]  Unix time when the rank entered the operation.
--   stack_id           BIGINT       Stack of the call.
--   last_id            BIGINT       Number of the last collective that the rank entered in the group; NULL if it has none.
--   is_later           BOOLEAN      For a missing rank, whether its dump is not merely older than the dumps of the others.
WITH
    -- One narrow row per operation, because a million operations with all of their strings take gigabytes.
    _entries AS MATERIALIZED (
        SELECT
            o.run, o.group_key, o.rank, o.collective_seq_id AS seq, o.record_id, o.is_ended, o.needs_all, o.backend IS NOT DISTINCT FROM 'nccl' AS is_nccl,
            o.created_ns, coalesce(o.completed_ns, o.created_ns + o.timeout_ns) AS end_ns,
            max(o.collective_seq_id) FILTER (o.is_ended) OVER (PARTITION BY o.run, o.group_key, o.rank, o.thread_id) AS ended_id
        FROM lib.dump_operations(runs) AS o
        WHERE NOT o.is_p2p
    ),
    _groups AS MATERIALIZED (
        SELECT o.run, o.group_key, any_value(o.channel) AS channel, any_value(o.pg_name) AS pg_name, any_value(o.pg_desc) AS pg_desc
        FROM lib.dump_operations(runs) AS o
        WHERE NOT o.is_p2p
        GROUP BY o.run, o.group_key
    ),
    _progress AS MATERIALIZED (
        SELECT e.run, e.group_key, e.rank, max(e.seq) AS last_id
        FROM _entries AS e
        GROUP BY e.run, e.group_key, e.rank
    ),
    _members AS MATERIALIZED (
        SELECT
            m.run, m.group_key, m.rank, m.has_dump, m.is_damaged, p.last_id,
            greatest(p.last_id, m.last_enqueued_id) AS entered_id,
            m.is_damaged AND m.last_enqueued_id IS NULL AS may_have_lost
        FROM lib._dump_members(runs) AS m
        LEFT JOIN _progress AS p ON p.run = m.run AND p.group_key = m.group_key AND p.rank = m.rank
    ),
    _levels AS MATERIALIZED (
        SELECT
            m.run, m.group_key, bool_and(m.has_dump AND NOT m.may_have_lost) AS is_whole, bool_and(m.has_dump) AS is_dumped, count(*) AS member_count,
            min(coalesce(m.entered_id, -1)) FILTER (m.has_dump AND NOT m.may_have_lost) AS least_id
        FROM _members AS m
        GROUP BY m.run, m.group_key
    ),
    _ended AS MATERIALIZED (
        SELECT e.run, e.group_key, e.seq
        FROM _entries AS e
        WHERE e.is_ended AND NOT e.is_nccl AND e.needs_all
        GROUP BY e.run, e.group_key, e.seq
    ),
    _open AS (
        SELECT e.run, e.group_key, min(e.seq) AS seq
        FROM _entries AS e
        JOIN _levels AS l ON l.run = e.run AND l.group_key = e.group_key
        LEFT JOIN _ended AS d ON d.run = e.run AND d.group_key = e.group_key AND d.seq = e.seq
        WHERE NOT e.is_ended AND e.seq > coalesce(e.ended_id, -1) AND (d.seq IS NULL OR NOT l.is_whole OR l.least_id < e.seq)
        GROUP BY e.run, e.group_key
    ),
    _left AS (
        SELECT e.run, e.group_key, min(e.seq) AS seq
        FROM _entries AS e
        JOIN _levels AS l ON l.run = e.run AND l.group_key = e.group_key
        WHERE e.needs_all AND e.seq > l.least_id
        GROUP BY e.run, e.group_key
    ),
    -- Whether the last operation of a group has finished is unknown if a rank has no dump, or if no dump states the ranks
    -- and a single one knows the group.
    _unknown AS (
        SELECT e.run, e.group_key, max(e.seq) AS seq
        FROM _entries AS e
        JOIN _levels AS l ON l.run = e.run AND l.group_key = e.group_key
        WHERE NOT l.is_dumped OR (l.member_count = 1 AND NOT contains(e.group_key, ' ['))
        GROUP BY e.run, e.group_key
        HAVING arg_max(e.needs_all, e.seq)
    ),
    -- An operation with a root that ended without a rank: the root may be ahead, or it timed out.
    _ahead AS (
        SELECT e.run, e.group_key, min(e.seq) AS seq
        FROM _entries AS e
        JOIN _levels AS l ON l.run = e.run AND l.group_key = e.group_key
        WHERE NOT e.needs_all AND e.seq > l.least_id
        GROUP BY e.run, e.group_key
    ),
    _mismatched AS MATERIALIZED (
        SELECT x.run, x.group_key, x.collective_seq_id AS seq, x.rank FROM lib.dump_mismatches(runs) AS x
    ),
    _differing AS (
        SELECT x.run, x.group_key, min(x.seq) AS seq FROM _mismatched AS x GROUP BY x.run, x.group_key
    ),
    _stuck AS MATERIALIZED (
        SELECT
            g.run, g.group_key, g.channel, g.pg_name, g.pg_desc,
            CASE WHEN o.seq <= coalesce(l.seq, o.seq) THEN o.seq ELSE coalesce(least(l.seq, d.seq), a.seq, u.seq) END AS collective_seq_id
        FROM _groups AS g
        LEFT JOIN _open AS o ON o.run = g.run AND o.group_key = g.group_key
        LEFT JOIN _left AS l ON l.run = g.run AND l.group_key = g.group_key
        LEFT JOIN _differing AS d ON d.run = g.run AND d.group_key = g.group_key
        LEFT JOIN _ahead AS a ON a.run = g.run AND a.group_key = g.group_key
        LEFT JOIN _unknown AS u ON u.run = g.run AND u.group_key = g.group_key
        WHERE coalesce(o.seq, l.seq, d.seq, a.seq, u.seq) IS NOT NULL
    ),
    _entered AS MATERIALIZED (
        SELECT
            o.run, o.group_key, o.rank, min(o.record_id) AS record_id, bool_and(o.is_ended) AS is_ended, bool_or(o.state = 'started') AS is_started,
            arg_min(o.op_text, o.record_id) AS op_text, min(o.created_ns) AS created_ns, arg_min(o.stack_id, o.record_id) AS stack_id
        FROM lib.dump_operations(runs) AS o
        JOIN _stuck AS s ON s.run = o.run AND s.group_key = o.group_key AND s.collective_seq_id = o.collective_seq_id
        WHERE NOT o.is_p2p
        GROUP BY o.run, o.group_key, o.rank
    ),
    _roles AS MATERIALIZED (
        SELECT
            s.run, s.group_key, s.channel, s.pg_name, s.pg_desc, s.collective_seq_id, m.rank, m.last_id,
            CASE
                WHEN NOT m.has_dump THEN 'undumped'
                WHEN x.rank IS NOT NULL THEN 'different'
                WHEN e.rank IS NULL AND m.may_have_lost AND coalesce(m.last_id, -1) < s.collective_seq_id THEN 'undumped'
                WHEN e.rank IS NULL AND coalesce(m.entered_id, -1) < s.collective_seq_id THEN 'missing'
                WHEN e.rank IS NULL THEN 'finished'
                WHEN e.is_ended THEN 'ended'
                WHEN NOT e.is_started AND bool_or(e.is_started) OVER (PARTITION BY s.run, s.group_key) THEN 'scheduled'
                ELSE 'waiting'
            END AS role,
            e.record_id, e.op_text, e.created_ns, e.stack_id
        FROM _stuck AS s
        JOIN _members AS m ON m.run = s.run AND m.group_key = s.group_key
        LEFT JOIN _entered AS e ON e.run = s.run AND e.group_key = s.group_key AND e.rank = m.rank
        LEFT JOIN _mismatched AS x ON x.run = s.run AND x.group_key = s.group_key AND x.seq = s.collective_seq_id AND x.rank = m.rank
    ),
    -- If the job is healthy, the dump of the first rank is older than that of the second. The operation had ended on the
    -- second when its recorder noticed it, or else when it timed out. The next operation of that rank says nothing,
    -- because an operation may run while its rank enters others.
    _older AS MATERIALIZED (
        SELECT b.run, b.group_key, b.collective_seq_id, b.rank AS rank, o.rank AS than_rank, e.end_ns
        FROM _roles AS b
        JOIN _roles AS o ON o.run = b.run AND o.group_key = b.group_key AND o.role = 'ended'
        JOIN _entries AS e ON e.run = o.run AND e.rank = o.rank AND e.record_id = o.record_id AND e.needs_all
        WHERE b.role = 'missing'
    ),
    -- How much later than another rank a rank entered their common operations, on the clocks of their hosts.
    _lags AS (
        SELECT o.run, o.group_key, o.rank, o.than_rank, max(a.created_ns - b.created_ns) AS lag_ns
        FROM _older AS o
        JOIN _entries AS a ON a.run = o.run AND a.group_key = o.group_key AND a.rank = o.rank
        JOIN _entries AS b ON b.run = o.run AND b.group_key = o.group_key AND b.rank = o.than_rank AND b.seq = a.seq
        GROUP BY o.run, o.group_key, o.rank, o.than_rank
    ),
    _lasts AS (
        SELECT e.run, e.rank, max(e.created_ns) AS last_ns FROM _entries AS e GROUP BY e.run, e.rank
    ),
    _later AS (
        SELECT o.run, o.group_key, o.rank
        FROM _older AS o
        LEFT JOIN _lags AS g ON g.run = o.run AND g.group_key = o.group_key AND g.rank = o.rank AND g.than_rank = o.than_rank
        LEFT JOIN _lasts AS t ON t.run = o.run AND t.rank = o.rank
        LEFT JOIN (SELECT DISTINCT b.run, b.rank, b.than_rank FROM _older AS b) AS b ON b.run = o.run AND b.rank = o.than_rank AND b.than_rank = o.rank
        GROUP BY o.run, o.group_key, o.rank
        HAVING bool_or(b.rank IS NOT NULL OR coalesce(t.last_ns - o.end_ns > greatest(g.lag_ns, 0), false))
    ),
    _agreed AS (
        SELECT r.run, r.group_key, min(r.last_id) = max(r.last_id) AS is_agreed
        FROM _roles AS r
        WHERE r.role IN ('ended', 'finished')
        GROUP BY r.run, r.group_key
    )
SELECT
    r.run,
    r.group_key AS item_key,
    r.channel,
    r.pg_name,
    r.pg_desc,
    false AS is_p2p,
    r.collective_seq_id,
    r.rank,
    CASE WHEN r.role = 'ended' AND NOT bool_or(r.role = 'missing') OVER (PARTITION BY r.run, r.group_key) THEN 'finished' ELSE r.role END AS role,
    r.record_id,
    r.op_text,
    r.created_ns,
    r.stack_id,
    r.last_id,
    CASE WHEN r.role = 'missing' THEN t.rank IS NOT NULL AND coalesce(a.is_agreed, false) END AS is_later
FROM _roles AS r
LEFT JOIN _later AS t ON t.run = r.run AND t.group_key = r.group_key AND t.rank = r.rank
LEFT JOIN _agreed AS a ON a.run = r.run AND a.group_key = r.group_key
