-- Ranks that ran a different operation than most ranks of the group under the same number, from Flight Recorder
-- dumps.
--
-- Shapes and types are compared only if the operation requires them to be equal. The first mismatch of a group is the
-- cause; later mismatches may follow from it.
CREATE OR REPLACE MACRO lib.dump_mismatches(
    runs
) AS TABLE
-- Columns:
--   run                VARCHAR         Run name.
--   group_key          VARCHAR         Name and ranks of the group.
--   channel            VARCHAR         Description and name of the group.
--   pg_name            VARCHAR         Process group name.
--   member_ranks       VARCHAR         Ranks of the group as JSON; NULL if no dump states them.
--   collective_seq_id  BIGINT          Number of the collective in the group.
--   rank               INTEGER         Rank that differs.
--   differs_in         VARCHAR         collective, elem_type, input_sizes, output_sizes or several of them.
--   value              VARCHAR         Value of the rank.
--   majority_value     VARCHAR         Value of most ranks; on a tie, the value of the lowest rank.
--   majority_count     BIGINT [count]  Number of ranks with that value.
--   start_ns           BIGINT [ns]     Unix time when the first rank enqueued the operation.
WITH
    _suspected AS (
        SELECT o.run, o.group_key, o.collective_seq_id
        FROM lib.dump_operations(runs) AS o
        WHERE NOT o.is_p2p AND o.op <> 'coalesced'
        GROUP BY o.run, o.group_key, o.collective_seq_id
        HAVING
            min(o.op) <> max(o.op) OR coalesce(min(o.input_sizes) <> max(o.input_sizes), false)
            OR coalesce(min(o.output_sizes) <> max(o.output_sizes), false) OR coalesce(min(o.input_types) <> max(o.input_types), false)
            OR coalesce(min(o.output_types) <> max(o.output_types), false)
    ),
    _compared AS (
        SELECT
            o.run, o.group_key, o.channel, o.pg_name, o.member_ranks, o.collective_seq_id, o.rank, o.op, o.op_text, o.created_ns,
            CASE WHEN o.op IN ('scatter', 'barrier') OR o.op LIKE 'all_to_all%' OR o.op LIKE '%\_v%' ESCAPE '\' THEN NULL ELSE o.input_sizes END AS same_in,
            CASE WHEN o.op IN ('gather', 'reduce', '_reduce_oop', 'barrier') OR o.op LIKE 'all_to_all%' OR o.op LIKE '%\_v%' ESCAPE '\' THEN NULL ELSE o.output_sizes END AS same_out,
            -- A scatter has inputs only on its root, and a gather has outputs only on its root.
            CASE WHEN o.op IN ('scatter', 'barrier') THEN nullif(o.output_types, '[]') ELSE nullif(o.input_types, '[]') END AS elem_type
        FROM lib.dump_operations(runs) AS o
        JOIN _suspected AS s ON s.run = o.run AND s.group_key = o.group_key AND s.collective_seq_id = o.collective_seq_id
        WHERE NOT o.is_p2p AND o.op <> 'coalesced'
        -- Operations of one coalesced call share a number.
        QUALIFY row_number() OVER (PARTITION BY o.run, o.group_key, o.rank, o.collective_seq_id ORDER BY o.record_id) = 1
    ),
    _differing AS (
        SELECT c.run, c.group_key, c.collective_seq_id
        FROM _compared AS c
        GROUP BY c.run, c.group_key, c.collective_seq_id
        HAVING
            min(c.op) <> max(c.op) OR coalesce(min(c.same_in) <> max(c.same_in), false) OR coalesce(min(c.same_out) <> max(c.same_out), false)
            OR coalesce(min(c.elem_type) <> max(c.elem_type), false)
    ),
    _found AS MATERIALIZED (
        SELECT c.*
        FROM _compared AS c
        JOIN _differing AS d ON d.run = c.run AND d.group_key = c.group_key AND d.collective_seq_id = c.collective_seq_id
    ),
    _usual AS (
        SELECT
            f.run, f.group_key, f.collective_seq_id, f.op, f.same_in, f.same_out, f.elem_type, arg_min(f.op_text, f.rank) AS op_text, count(*) AS n
        FROM _found AS f
        GROUP BY f.run, f.group_key, f.collective_seq_id, f.op, f.same_in, f.same_out, f.elem_type
        QUALIFY row_number() OVER (PARTITION BY f.run, f.group_key, f.collective_seq_id ORDER BY count(*) DESC, min(f.rank)) = 1
    ),
    _judged AS (
        SELECT
            f.*, u.op_text AS majority_value, u.n AS majority_count,
            min(f.created_ns) OVER (PARTITION BY f.run, f.group_key, f.collective_seq_id) AS start_ns,
            concat_ws(
                ', ',
                CASE WHEN f.op <> u.op THEN 'collective' END,
                CASE WHEN f.elem_type <> u.elem_type THEN 'elem_type' END,
                CASE WHEN f.same_in <> u.same_in THEN 'input_sizes' END,
                CASE WHEN f.same_out <> u.same_out THEN 'output_sizes' END
            ) AS differs_in
        FROM _found AS f
        JOIN _usual AS u ON u.run = f.run AND u.group_key = f.group_key AND u.collective_seq_id = f.collective_seq_id
    )
SELECT
    j.run, j.group_key, j.channel, j.pg_name, j.member_ranks, j.collective_seq_id, j.rank, j.differs_in, j.op_text AS value,
    j.majority_value, j.majority_count, j.start_ns
FROM _judged AS j
WHERE j.differs_in <> ''
