-- State of each rank at the first unfinished collective of a process group, from Flight Recorder dumps.
--
-- A rank is waiting (entered, not finished), scheduled (entered, but not started on its device while others did),
-- different (entered a different operation), missing (never entered), finished, or undumped (no dump, or a damaged
-- dump that may have lost the operation).
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib.stuck_collectives(
    -- Runs to include; NULL means every run.
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
--   role               VARCHAR      Role of the rank: waiting, scheduled, different, missing, finished or undumped.
--   record_id          BIGINT       Entry of the rank in fr_entries; NULL if it has none.
--   op_text            VARCHAR      Operation that the rank entered.
--   created_ns         BIGINT [ns]  Unix time when the rank entered the operation.
--   stack_id           BIGINT       Stack of the call.
WITH
    -- Recomputed for each reference, because a million operations with all of their strings take gigabytes.
    _progress AS (
        SELECT
            o.run, o.group_key, o.rank, min(o.collective_seq_id) FILTER (NOT o.is_finished) AS unfinished_id, max(o.collective_seq_id) AS last_id,
            any_value(o.channel) AS channel, any_value(o.pg_name) AS pg_name, any_value(o.pg_desc) AS pg_desc
        FROM lib.dump_operations(runs) AS o
        WHERE NOT o.is_p2p
        GROUP BY o.run, o.group_key, o.rank
    ),
    _stuck AS (
        SELECT
            p.run, p.group_key, min(p.unfinished_id) AS collective_seq_id,
            any_value(p.channel) AS channel, any_value(p.pg_name) AS pg_name, any_value(p.pg_desc) AS pg_desc
        FROM _progress AS p
        GROUP BY p.run, p.group_key
        HAVING min(p.unfinished_id) IS NOT NULL
    ),
    _entered AS (
        SELECT
            o.run, o.group_key, o.rank, min(o.record_id) AS record_id, bool_and(o.is_finished) AS is_finished, bool_or(o.state = 'started') AS is_started,
            arg_min(o.op_text, o.record_id) AS op_text, min(o.created_ns) AS created_ns, arg_min(o.stack_id, o.record_id) AS stack_id
        FROM lib.dump_operations(runs) AS o
        JOIN _stuck AS s ON s.run = o.run AND s.group_key = o.group_key AND s.collective_seq_id = o.collective_seq_id
        WHERE NOT o.is_p2p
        GROUP BY o.run, o.group_key, o.rank
    )
SELECT
    s.run,
    s.group_key AS item_key,
    s.channel,
    s.pg_name,
    s.pg_desc,
    false AS is_p2p,
    s.collective_seq_id,
    m.rank,
    CASE
        WHEN NOT m.has_dump THEN 'undumped'
        WHEN x.rank IS NOT NULL THEN 'different'
        WHEN e.rank IS NULL AND m.is_damaged AND m.last_enqueued_id IS NULL AND coalesce(p.last_id, -1) < s.collective_seq_id THEN 'undumped'
        WHEN e.rank IS NULL AND coalesce(greatest(p.last_id, m.last_enqueued_id), -1) < s.collective_seq_id THEN 'missing'
        WHEN e.rank IS NULL OR e.is_finished THEN 'finished'
        WHEN NOT e.is_started AND bool_or(e.is_started) OVER (PARTITION BY s.run, s.group_key) THEN 'scheduled'
        ELSE 'waiting'
    END AS role,
    e.record_id,
    e.op_text,
    e.created_ns,
    e.stack_id
FROM _stuck AS s
JOIN lib._dump_members(runs) AS m ON m.run = s.run AND m.group_key = s.group_key
LEFT JOIN _progress AS p ON p.run = s.run AND p.group_key = s.group_key AND p.rank = m.rank
LEFT JOIN _entered AS e ON e.run = s.run AND e.group_key = s.group_key AND e.rank = m.rank
LEFT JOIN lib.dump_mismatches(runs) AS x
    ON x.run = s.run AND x.group_key = s.group_key AND x.collective_seq_id = s.collective_seq_id AND x.rank = m.rank
