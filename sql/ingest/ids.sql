-- Ids of events while traces are read: number of the trace above forty bits for the position in it.
--
-- One trace is read with cheap macros, several at once with those that tell traces apart.

-- name: part_of_one
-- Of a single trace, whose number is 0: joins by a constant cost nothing.
CREATE OR REPLACE MACRO part_of(id) AS 0::BIGINT;

-- name: own_id_one
-- The id of an event of a single trace, as it is stored.
CREATE OR REPLACE MACRO own_id(id) AS id;

-- name: part_of_many
-- Number of the trace of an event, which stands above the forty bits that positions need.
CREATE OR REPLACE MACRO part_of(id) AS id >> 40;

-- name: own_id_many
-- The id of an event within its own trace, as it is stored.
CREATE OR REPLACE MACRO own_id(id) AS id & 1_099_511_627_775;

-- name: same_event
-- The id of an event, of which the rows of two tables say that it is theirs: tables joined by position.
CREATE OR REPLACE MACRO same_event(id, id_there) AS
    CASE
        WHEN id = id_there THEN id
        ELSE error('event ' || coalesce(id::VARCHAR, 'none') || ' stands where its links are those of ' || coalesce(id_there::VARCHAR, 'none'))
    END;
