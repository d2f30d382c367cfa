-- State of both ranks at their first unfinished send or receive, from Flight Recorder dumps.
--
-- The n-th send of a rank to another rank matches the n-th receive on that rank. If a dump has lost its first entries, only
-- unfinished operations are counted. Roles are those of lib.stuck_collectives.
CREATE OR REPLACE MACRO lib._stuck_messages(
    runs
) AS TABLE
-- Columns:
--   run                VARCHAR      Run name.
--   item_key           VARCHAR      Key of the group, and the pair of ranks.
--   channel            VARCHAR      Description and name of the group, and the pair.
--   pg_name            VARCHAR      Process group name.
--   pg_desc            VARCHAR      Process group description.
--   is_p2p             BOOLEAN      Always true.
--   collective_seq_id  BIGINT       Always NULL.
--   rank               INTEGER      Rank that sends or receives.
--   role               VARCHAR      Role of the rank.
--   record_id          BIGINT       Entry of the rank in fr_entries; NULL if it has none.
--   op_text            VARCHAR      Operation that the rank entered.
--   created_ns         BIGINT [ns]  Unix time when the rank entered the operation.
--   stack_id           BIGINT       Stack of the call.
--   last_id            BIGINT       Always NULL.
--   is_later           BOOLEAN      Always NULL.
WITH
    _firsts AS (
        SELECT e.run, e.rank, min(e.record_id) AS first_id FROM fr_entries AS e WHERE lib.is_requested(runs, e.run) GROUP BY e.run, e.rank
    ),
    _messages AS MATERIALIZED (
        SELECT
            o.run, o.group_key, o.channel, o.pg_name, o.pg_desc, o.rank, o.src_rank, o.dst_rank, o.op, o.op_text, o.record_id, o.is_ended, o.created_ns, o.stack_id,
            row_number() OVER (PARTITION BY o.run, o.group_key, o.src_rank, o.dst_rank, o.op ORDER BY o.record_id) AS number
        FROM lib.dump_operations(runs) AS o
        LEFT JOIN _firsts AS s ON s.run = o.run AND s.rank = o.src_rank
        LEFT JOIN _firsts AS d ON d.run = o.run AND d.rank = o.dst_rank
        WHERE o.is_p2p AND o.src_rank IS NOT NULL AND o.dst_rank IS NOT NULL AND ((s.first_id = 0 AND d.first_id = 0) OR NOT o.is_ended)
    ),
    _first AS (
        SELECT
            m.run, m.group_key, m.channel, m.pg_name, m.pg_desc, m.src_rank, m.dst_rank, m.number,
            row_number() OVER (PARTITION BY m.run, m.group_key, m.src_rank, m.dst_rank ORDER BY m.number) AS place
        FROM _messages AS m
        WHERE NOT m.is_ended
        QUALIFY place = 1
    ),
    _ends AS (
        SELECT f.*, f.src_rank AS rank, 'send' AS op FROM _first AS f
        UNION ALL
        SELECT f.*, f.dst_rank, 'recv' FROM _first AS f
    )
SELECT
    e.run,
    concat(e.group_key, ' ', e.src_rank, '->', e.dst_rank) AS item_key,
    concat(e.channel, ' ', e.src_rank, '->', e.dst_rank) AS channel,
    e.pg_name,
    e.pg_desc,
    true AS is_p2p,
    NULL::BIGINT AS collective_seq_id,
    e.rank,
    CASE
        WHEN d.rank IS NULL OR (m.rank IS NULL AND a.rank IS NOT NULL) THEN 'undumped'
        WHEN m.rank IS NULL THEN 'missing'
        WHEN m.is_ended THEN 'finished'
        ELSE 'waiting'
    END AS role,
    m.record_id,
    m.op_text,
    m.created_ns,
    m.stack_id,
    NULL::BIGINT AS last_id,
    NULL::BOOLEAN AS is_later
FROM _ends AS e
LEFT JOIN _firsts AS d ON d.run = e.run AND d.rank = e.rank
LEFT JOIN (SELECT DISTINCT a.run, a.rank FROM lib.damaged_artifacts(runs) AS a WHERE a.is_dump) AS a ON a.run = e.run AND a.rank = e.rank
LEFT JOIN _messages AS m
    ON m.run = e.run AND m.group_key = e.group_key AND m.src_rank = e.src_rank AND m.dst_rank = e.dst_rank AND m.op = e.op AND m.number = e.number
