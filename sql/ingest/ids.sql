-- Event ids during ingestion: the trace number in the upper bits, and the position in the trace in the lower 40 bits.
--
-- A trace ingested alone has number 0. For such a trace, the numbering costs less than 1 % of CPU time.

-- name: part_of
-- Trace number of an event, from the bits above the 40 bits of the position.
CREATE OR REPLACE MACRO part_of(id) AS id >> 40;

-- name: own_id
-- Id of an event within its own trace, as stored.
CREATE OR REPLACE MACRO own_id(id) AS id & 1_099_511_627_775;

-- name: same_event
-- Id of an event whose rows come from two tables joined by position; raises an error if the ids differ.
CREATE OR REPLACE MACRO same_event(id, id_there) AS
    CASE
        WHEN id = id_there THEN id
        ELSE error('event ' || coalesce(id::VARCHAR, 'none') || ' stands where its links are those of ' || coalesce(id_there::VARCHAR, 'none'))
    END;

-- name: ranks_in_run
-- A recorded list of ranks, converted to ranks of the run; rank 0 of the list is rank first_rank of the run.
--
-- Truncated lists stay truncated: [0, 1, ...] becomes [4, 5, ...].
CREATE OR REPLACE MACRO ranks_in_run(ranks, first_rank) AS
    CASE
        WHEN ranks IS NULL OR first_rank = 0 THEN ranks
        ELSE concat(
            CASE WHEN starts_with(trim(ranks), '[') THEN '[' ELSE '' END,
            array_to_string(
                list_transform(string_split(trim(ranks, '[] '), ','), lambda r: coalesce((TRY_CAST(trim(r) AS BIGINT) + first_rank)::VARCHAR, trim(r))),
                ', '
            ),
            CASE WHEN ends_with(trim(ranks), ']') THEN ']' ELSE '' END
        )
    END;

-- name: end_in_run
-- A recorded sender or receiver, converted to a rank of the run. If end_id is the sender, other_id is the receiver, and
-- vice versa. own_rank is the number that the recording rank has in its own trace.
--
-- If both ends are recorded and neither is the recording rank, both numbers are positions in the group.
CREATE OR REPLACE MACRO end_in_run(end_id, other_id, ranks, own_rank, first_rank) AS
    CASE
        WHEN end_id IS NULL OR end_id < 0 OR first_rank = 0 THEN end_id
        WHEN coalesce(other_id >= 0 AND own_rank NOT IN (end_id, other_id), false)
            THEN coalesce(TRY_CAST(trim(string_split(trim(ranks, '[] '), ',')[end_id + 1]) AS BIGINT) + first_rank, end_id)
        ELSE end_id + first_rank
    END;
