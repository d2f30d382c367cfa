-- Stuck process groups, and stuck pairs of sender and receiver, found in Flight Recorder dumps.
--
-- A group is stuck at the first collective that a rank entered and that has not ended, that ended without a rank of
-- the group, or that ranks entered differently. A rank blocks this collective if it
-- never entered the collective, entered a different operation or size, or did not start it on its device. If every
-- blocking rank only waits in a different stuck group, the hang follows from the hang of that group, and is_root is
-- false. Groups that wait for each other are all roots. If no dump states the ranks of a group, and a rank that blocks
-- another group has no operation in it, the hang of the group probably follows from that rank, and is_root is false. A
-- rank without a dump may be the cause, but gets no verdict. After a time-out, operations have ended without
-- finishing. If such an operation lacks a rank whose dump may be older than the others, the row is undecided and accuses
-- nobody. A dump that was written while a healthy job ran shows the operations in flight as unfinished. If the files of
-- the dumps were written so soon after a rank entered the operation that the missing ranks may merely be on their way,
-- the row is undecided too: within 0.5 s, or within three times the longest pause between two operations of a rank in the
-- dumps, and before the timeout. If the times of the files are unknown or later, as after a copy, nothing changes.
--
-- Title: What hangs, and which rank holds it up
-- Shown: channel, is_root, kind, missing_ranks, op, waiting_ranks, message
-- Also: nccl hang, flight recorder, timeout, deadlock
-- Status: stable
-- Since: 0.1
-- Scope: runs, ranks; a group is judged as a whole
-- Reference: PyTorch Flight Recorder analyzer (torch.distributed.flight_recorder)
-- Report: first 5; table; if fr_entries
-- Needs: Flight Recorder dumps (TORCH_FR_BUFFER_SIZE, TORCH_NCCL_DUMP_ON_TIMEOUT) of a job with an operation that did not finish
CREATE OR REPLACE MACRO hang_v1(
    runs VARCHAR[] := NULL,
    -- Show only groups that contain one of these ranks; NULL means every group.
    ranks INTEGER[] := NULL
) AS TABLE
-- Columns:
--   run                VARCHAR       Run name.
--   channel            VARCHAR       Description and name of the group; for a send or receive, followed by the pair of ranks.
--   pg_name            VARCHAR       Process group name.
--   is_root            BOOLEAN       Whether the cause is in this group; otherwise, the hang follows, or probably follows, from that of a different group.
--   cause_id           BIGINT        Number of the independent cause in its run; rows with the same number name the same rank or wait for each other. NULL unless is_root.
--   is_certain         BOOLEAN       Whether the group hangs; false if a healthy job may have dumps like these (kinds unfinished and undecided).
--   kind               VARCHAR       missing, mismatch, deadlock, not_started, no_dump, unfinished or undecided.
--   collective_seq_id  BIGINT        Number of the stuck collective in the group; NULL for sends and receives.
--   op                 VARCHAR       Operation that most waiting ranks entered, with shape and type.
--   is_p2p             BOOLEAN       Whether the operation is a send or a receive.
--   missing_ranks      VARCHAR       Ranks that never entered the operation, such as 3, 5-7.
--   waiting_ranks      VARCHAR       Ranks that entered the operation but did not finish it.
--   different_ranks    VARCHAR       Ranks that entered a different operation, size or type.
--   not_started_ranks  VARCHAR       Ranks whose host enqueued the operation but whose device did not start it.
--   finished_ranks     VARCHAR       Ranks that finished the operation, or on which it ended without the missing ranks.
--   undumped_ranks     VARCHAR       Ranks of the group without a dump.
--   culprit_ranks      VARCHAR       Ranks that block the others and do not wait in a different group themselves; in a deadlock, all ranks that block others.
--   waits_for          VARCHAR       Groups from whose hang this one follows, or probably follows; in a deadlock, the other groups of it.
--   since_ns           BIGINT [ns]   Unix time when the first waiting rank entered the operation.
--   since              VARCHAR       since_ns as a string, UTC.
--   frame              VARCHAR       Line of the user's program at which the lowest-numbered waiting rank entered the operation; NULL without stacks.
--   stack              VARCHAR       Complete call stack of the line in frame, innermost frame first.
--   culprit_op         VARCHAR       Last operation that the lowest-numbered culprit rank recorded, in any group.
--   culprit_frame      VARCHAR       Line of the user's program that called culprit_op.
--   mismatch_id        BIGINT        Number of the group's first collective at which ranks entered different operations; NULL if there is none.
--   message_code       VARCHAR       Code of the message in the table messages.
--   message            VARCHAR       Description of the hang, and what to inspect.
WITH
    judged AS MATERIALIZED (
        SELECT h.* FROM lib.hang_verdicts(runs) AS h
    ),
    lasts AS (
        SELECT o.run, o.rank, arg_max(concat(o.op_text, ' in ', o.channel), o.record_id) AS op_text, arg_max(o.stack_id, o.record_id) AS stack_id
        FROM lib.dump_operations(runs) AS o
        JOIN (SELECT DISTINCT j.run, j.culprit_list[1] AS rank FROM judged AS j) AS u ON u.run = o.run AND u.rank = o.rank
        GROUP BY o.run, o.rank
    ),
    stacks AS MATERIALIZED (
        SELECT s.* FROM lib.dump_stacks(runs) AS s
    ),
    described AS (
        SELECT
            j.*, s.frame_text, s.stack_text, l.op_text AS culprit_op, t.frame_text AS culprit_frame,
            strftime(make_timestamp(j.since_ns // 1000), '%Y-%m-%d %H:%M:%S') AS since,
            CASE WHEN j.collective_seq_id IS NOT NULL THEN concat(' number ', j.collective_seq_id) ELSE '' END AS number_text,
            coalesce(strftime(make_timestamp(j.since_ns // 1000), '%Y-%m-%d %H:%M:%S'), 'unknown') AS since_text,
            coalesce(len(j.waiting), 0) AS waiting_count,
            coalesce(lib._rank_list(j.waiting), 'none') AS waiting_text,
            coalesce(' at ' || s.frame_text, '') AS where_text,
            coalesce(len(j.culprit_list), 0) AS culprit_count,
            coalesce(lib._rank_list(j.culprit_list), 'unknown') AS culprits_text,
            j.culprit_list[1] AS culprit,
            coalesce(' at ' || t.frame_text, '') AS culprit_where_text,
            CASE
                WHEN j.has_stated_ranks THEN concat('All ranks of group ', j.channel) ELSE concat('All known ranks of group ', j.channel, ', whose ranks no dump states,')
            END AS members_text,
            coalesce(len(j.undumped), 0) AS undumped_count,
            coalesce(lib._rank_list(j.undumped), 'none') AS undumped_text,
            CASE WHEN j.finished IS NULL THEN '' ELSE concat('; ranks ', lib._rank_list(j.finished), ' finished it') END AS finished_text,
            CASE
                WHEN j.written_ns < j.since_ns THEN 'before'
                ELSE concat(printf('%.3f', (j.written_ns - j.since_ns) / 1e9), ' s after')
            END AS age_text,
            CASE
                WHEN j.missing IS NOT NULL THEN concat(CASE WHEN len(j.missing) = 1 THEN 'rank ' ELSE 'ranks ' END, lib._rank_list(j.missing), ' had not entered it')
                WHEN j.scheduled IS NOT NULL THEN concat(CASE WHEN len(j.scheduled) = 1 THEN 'rank ' ELSE 'ranks ' END, lib._rank_list(j.scheduled), ' had not started it')
                ELSE concat('there is no complete dump of ', CASE WHEN len(j.undumped) = 1 THEN 'rank ' ELSE 'ranks ' END, lib._rank_list(j.undumped))
            END AS lacking_text,
            coalesce(concat('; before, ranks paused up to ', printf('%.3f', j.pause_ns / 1e9), ' s between operations'), '') AS pause_text,
            CASE WHEN j.missing_last_id IS NULL THEN 'no collective' ELSE concat('number ', j.missing_last_id) END AS missing_at_text,
            CASE
                WHEN j.mismatch_id < j.collective_seq_id
                    THEN concat(' Look first at number ', j.mismatch_id, ': rank ', j.mismatch_rank, ' entered ', j.mismatch_value, ', others ', j.usual_value, '.')
                ELSE ''
            END AS mismatch_text
        FROM judged AS j
        LEFT JOIN stacks AS s ON s.run = j.run AND s.rank = j.first_rank AND s.stack_id = j.stack_id
        LEFT JOIN lasts AS l ON l.run = j.run AND l.rank = j.culprit_list[1]
        LEFT JOIN stacks AS t ON t.run = l.run AND t.rank = l.rank AND t.stack_id = l.stack_id
    ),
    worded AS (
        SELECT
            d.*,
            CASE
                WHEN d.suspect_list IS NOT NULL THEN lib.message(
                    'hang.probable_follower',
                    {
                        'channel': d.channel, 'op': d.op_text, 'number_text': d.number_text, 'where_text': d.where_text,
                        'since': d.since_text, 'waits_for': d.waits_for, 'suspect_count': len(d.suspect_list),
                        'suspects': lib._rank_list(d.suspect_list)
                    }
                )
                WHEN d.is_recent THEN lib.message(
                    'hang.undecided_recent',
                    {
                        'channel': d.channel, 'op': d.op_text, 'number_text': d.number_text, 'where_text': d.where_text,
                        'waiting_count': d.waiting_count, 'waiting': d.waiting_text, 'age_text': d.age_text, 'lacking_text': d.lacking_text,
                        'pause_text': d.pause_text
                    }
                )
                WHEN d.kind = 'undecided' AND d.is_alone THEN lib.message(
                    'hang.undecided_alone',
                    {
                        'rank': d.member_list[1], 'channel': d.channel, 'op': d.op_text, 'number_text': d.number_text, 'where_text': d.where_text
                    }
                )
                WHEN d.kind = 'undecided' AND d.missing IS NULL THEN lib.message(
                    'hang.undecided_undumped',
                    {
                        'channel': d.channel, 'op': d.op_text, 'number_text': d.number_text, 'where_text': d.where_text,
                        'ended_count': len(d.finished), 'ended': lib._rank_list(d.finished), 'undumped_count': d.undumped_count,
                        'undumped': d.undumped_text
                    }
                )
                WHEN d.kind = 'undecided' AND contains(d.stands_at, ',') THEN lib.message(
                    'hang.undecided_apart',
                    {
                        'channel': d.channel, 'missing_count': len(d.missing), 'missing': lib._rank_list(d.missing), 'missing_at': d.missing_at_text,
                        'stands_at': d.stands_at
                    }
                )
                WHEN d.kind = 'undecided' THEN lib.message(
                    'hang.undecided',
                    {
                        'channel': d.channel, 'missing_count': len(d.missing), 'missing': lib._rank_list(d.missing), 'missing_at': d.missing_at_text,
                        'ended_count': len(d.finished), 'ended': lib._rank_list(d.finished), 'op': d.op_text, 'number_text': d.number_text,
                        'where_text': d.where_text, 'rank': d.missing[1]
                    }
                )
                WHEN NOT d.is_root THEN lib.message(
                    'hang.follower',
                    {
                        'channel': d.channel, 'op': d.op_text, 'number_text': d.number_text, 'where_text': d.where_text,
                        'since': d.since_text, 'waits_for': d.waits_for
                    }
                )
                WHEN d.kind = 'mismatch' THEN lib.message(
                    'hang.mismatch',
                    {
                        'culprit_count': d.culprit_count, 'culprits': d.culprits_text, 'different_op': d.different_op_text,
                        'number_text': d.number_text, 'channel': d.channel, 'op': d.op_text, 'where_text': d.where_text,
                        'since': d.since_text
                    }
                )
                WHEN d.kind = 'deadlock' THEN lib.message(
                    'hang.deadlock',
                    {
                        'op': d.op_text, 'number_text': d.number_text, 'channel': d.channel, 'culprit_count': d.culprit_count,
                        'culprits': d.culprits_text, 'waits_for': d.waits_for, 'waiting_count': d.waiting_count,
                        'waiting': d.waiting_text, 'where_text': d.where_text, 'since': d.since_text
                    }
                )
                WHEN d.kind = 'missing' AND d.is_p2p THEN lib.message(
                    'hang.no_partner',
                    {
                        'culprit': d.culprit, 'op': d.op_text, 'channel': d.channel, 'waiting': d.waiting_text,
                        'where_text': d.where_text, 'since': d.since_text, 'culprit_op': d.culprit_op,
                        'culprit_where': d.culprit_where_text
                    }
                )
                WHEN d.kind = 'missing' AND d.has_ended THEN lib.message(
                    'hang.left_behind',
                    {
                        'culprit_count': d.culprit_count, 'culprits': d.culprits_text, 'missing_at': d.missing_at_text, 'channel': d.channel,
                        'ended_count': len(d.finished), 'ended': lib._rank_list(d.finished), 'op': d.op_text, 'number_text': d.number_text,
                        'where_text': d.where_text, 'since': d.since_text, 'culprit': d.culprit, 'culprit_op': d.culprit_op,
                        'culprit_where': d.culprit_where_text
                    }
                )
                WHEN d.kind = 'missing' THEN lib.message(
                    'hang.missing',
                    {
                        'culprit_count': d.culprit_count, 'culprits': d.culprits_text, 'op': d.op_text, 'number_text': d.number_text,
                        'channel': d.channel, 'waiting_count': d.waiting_count, 'waiting': d.waiting_text, 'where_text': d.where_text,
                        'since': d.since_text, 'culprit': d.culprit, 'culprit_op': d.culprit_op, 'culprit_where': d.culprit_where_text,
                        'mismatch_text': d.mismatch_text
                    }
                )
                WHEN d.kind = 'not_started' THEN lib.message(
                    'hang.not_started',
                    {
                        'culprit_count': d.culprit_count, 'culprits': d.culprits_text, 'op': d.op_text, 'number_text': d.number_text,
                        'channel': d.channel, 'where_text': d.where_text, 'since': d.since_text
                    }
                )
                WHEN d.kind = 'no_dump' THEN lib.message(
                    'hang.no_dump',
                    {
                        'waiting_count': d.waiting_count, 'waiting': d.waiting_text, 'op': d.op_text, 'number_text': d.number_text,
                        'channel': d.channel, 'where_text': d.where_text, 'since': d.since_text, 'undumped_count': d.undumped_count,
                        'undumped': d.undumped_text, 'finished_text': d.finished_text, 'mismatch_text': d.mismatch_text
                    }
                )
                WHEN d.is_alone THEN lib.message(
                    'hang.unfinished_alone',
                    {
                        'rank': d.member_list[1], 'channel': d.channel, 'op': d.op_text, 'number_text': d.number_text, 'where_text': d.where_text,
                        'since': d.since_text
                    }
                )
                ELSE lib.message(
                    'hang.unfinished',
                    {
                        'members_text': d.members_text, 'op': d.op_text, 'number_text': d.number_text, 'waiting_count': d.waiting_count,
                        'waiting': d.waiting_text, 'where_text': d.where_text, 'since': d.since_text, 'finished_text': d.finished_text,
                        'mismatch_text': d.mismatch_text
                    }
                )
            END AS message,
            row_number() OVER (PARTITION BY d.run ORDER BY NOT d.is_root, d.kind IN ('unfinished', 'undecided'), d.since_ns, d.item_key) AS place
        FROM described AS d
    ),
    -- The first row of each cause: of a rank that blocks several groups, of groups that wait for each other, or of a
    -- rank without a dump.
    placed AS (
        SELECT
            t.*,
            min(t.place) OVER (
                PARTITION BY t.run, t.circle_key, CASE WHEN t.circle_key IS NULL THEN t.culprit_list[1] END,
                CASE WHEN t.circle_key IS NULL AND t.culprit_list IS NULL THEN coalesce(t.undumped[1]::VARCHAR, t.item_key) END
            ) AS cause_place
        FROM worded AS t
    ),
    numbered AS (
        SELECT
            p.*, CASE WHEN p.is_root THEN dense_rank() OVER (PARTITION BY p.run, p.is_root ORDER BY p.cause_place) END AS cause_id
        FROM placed AS p
    )
SELECT
    d.run,
    d.channel,
    d.pg_name,
    d.is_root,
    d.cause_id,
    d.is_certain,
    d.kind,
    d.collective_seq_id,
    d.op_text AS op,
    d.is_p2p,
    lib._rank_list(d.missing) AS missing_ranks,
    lib._rank_list(d.waiting) AS waiting_ranks,
    lib._rank_list(d.different) AS different_ranks,
    lib._rank_list(d.scheduled) AS not_started_ranks,
    lib._rank_list(d.finished) AS finished_ranks,
    lib._rank_list(d.undumped) AS undumped_ranks,
    lib._rank_list(d.culprit_list) AS culprit_ranks,
    CASE WHEN NOT d.is_root OR d.kind = 'deadlock' THEN d.waits_for END AS waits_for,
    d.since_ns,
    d.since,
    d.frame_text AS frame,
    d.stack_text AS stack,
    d.culprit_op,
    d.culprit_frame,
    d.mismatch_id,
    d.message.code AS message_code,
    lib.message_text(t.message, d.message.fields) AS message
FROM numbered AS d
LEFT JOIN messages AS t ON t.code = d.message.code
WHERE ranks IS NULL OR list_has_any(d.member_list, ranks)
ORDER BY d.run, d.place
