-- Operations in Flight Recorder dumps, with a key of their group that is the same on all ranks.
--
-- A group is identified by its name and ranks, because jobs that split a group give several parts the same name. Gloo
-- does not state ranks, so its groups are identified by the name alone.
CREATE OR REPLACE MACRO lib.dump_operations(
    runs
) AS TABLE
-- Columns:
--   run            VARCHAR      Run name.
--   rank           INTEGER      Rank of the dump.
--   record_id      BIGINT       Number of the entry in its process.
--   group_key      VARCHAR      Name and ranks of the group.
--   channel        VARCHAR      Description and name of the group, for display.
--   pg_name        VARCHAR      Process group name.
--   pg_desc        VARCHAR      Process group description.
--   member_ranks   VARCHAR      Ranks of the group as JSON; NULL if no dump states them.
--   collective_seq_id  BIGINT   Number of the collective in its group.
--   op             VARCHAR      Operation.
--   op_text        VARCHAR      Operation with shape and type, such as all_reduce of [1024] Float.
--   input_sizes    VARCHAR      Shapes of the inputs as JSON.
--   input_types    VARCHAR      Types of the inputs as JSON.
--   output_sizes   VARCHAR      Shapes of the outputs as JSON.
--   output_types   VARCHAR      Types of the outputs as JSON.
--   is_p2p         BOOLEAN      Whether the operation is a send or a receive.
--   src_rank       INTEGER      Rank that sends, within the group if its ranks are not known; NULL for collectives.
--   dst_rank       INTEGER      Rank that receives, within the group if its ranks are not known; NULL for collectives.
--   state          VARCHAR      scheduled, started or completed.
--   is_ended       BOOLEAN      Whether the operation ended, successfully or not.
--   needs_all      BOOLEAN      Whether the operation ends on a rank only after all ranks of the group have entered it.
--   created_ns     BIGINT [ns]  Unix time when the host enqueued the operation.
--   completed_ns   BIGINT [ns]  Unix time when the recorder found the operation completed.
--   timeout_ns     BIGINT [ns]  Timeout of the operation.
--   stack_id       BIGINT       Stack of the call, in fr_frames.
--   backend        VARCHAR      Communication library.
--   thread_id      VARCHAR      Calling thread; NULL if the dump does not state it.
WITH
    _groups AS MATERIALIZED (
        SELECT
            g.run, g.rank, g.pg_name, g.member_ranks, from_json(g.member_ranks, '["INTEGER"]') AS members,
            lib.dump_group_key(g.pg_name, g.member_ranks) AS group_key,
            CASE WHEN nullif(nullif(g.pg_desc, ''), 'undefined') IS NULL THEN coalesce(g.pg_name, 'unknown') ELSE concat(g.pg_desc, ' (', g.pg_name, ')') END AS channel
        FROM fr_groups AS g
        WHERE lib.is_requested(runs, g.run)
    )
SELECT
    e.run,
    e.rank,
    e.record_id,
    coalesce(g.group_key, lib.dump_group_key(e.pg_name, NULL)) AS group_key,
    coalesce(g.channel, e.pg_desc, e.pg_name, 'unknown') AS channel,
    e.pg_name,
    e.pg_desc,
    g.member_ranks,
    e.collective_seq_id,
    e.op,
    concat_ws(
        ' of ', e.op,
        nullif(
            concat_ws(
                ' ',
                CASE
                    WHEN e.input_sizes = e.output_sizes OR e.output_sizes = '[]' OR e.output_sizes IS NULL THEN nullif(substr(e.input_sizes, 2, len(e.input_sizes) - 2), '')
                    ELSE concat_ws(' to ', nullif(substr(e.input_sizes, 2, len(e.input_sizes) - 2), ''), nullif(substr(e.output_sizes, 2, len(e.output_sizes) - 2), ''))
                END,
                nullif(regexp_replace(coalesce(nullif(e.input_types, '[]'), e.output_types), '[\["\]]', '', 'g'), '')
            ),
            ''
        )
    ) AS op_text,
    e.input_sizes,
    e.input_types,
    e.output_sizes,
    e.output_types,
    e.is_p2p,
    CASE WHEN g.members IS NULL THEN e.src_group_rank ELSE g.members[e.src_group_rank + 1] END AS src_rank,
    CASE WHEN g.members IS NULL THEN e.dst_group_rank ELSE g.members[e.dst_group_rank + 1] END AS dst_rank,
    e.state,
    e.is_ended,
    NOT e.is_p2p AND regexp_matches(e.op, '^_?(all|reduce_scatter|barrier|monitored_barrier)') AS needs_all,
    e.created_ns,
    e.completed_ns,
    e.timeout_ns,
    e.stack_id,
    e.backend,
    e.thread_id
FROM fr_entries AS e
LEFT JOIN _groups AS g ON g.run = e.run AND g.rank = e.rank AND g.pg_name IS NOT DISTINCT FROM e.pg_name
WHERE lib.is_requested(runs, e.run)
