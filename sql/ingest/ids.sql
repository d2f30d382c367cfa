-- Ids of events while traces are read: number of the trace above forty bits for the position in it.
--
-- A trace that is read by itself has the number 0. Telling traces apart costs it less than 1 % of CPU.

-- name: part_of
-- Number of the trace of an event, which stands above the forty bits that positions need.
CREATE OR REPLACE MACRO part_of(id) AS id >> 40;

-- name: own_id
-- The id of an event within its own trace, as it is stored.
CREATE OR REPLACE MACRO own_id(id) AS id & 1_099_511_627_775;

-- name: same_event
-- The id of an event, of which the rows of two tables say that it is theirs: tables joined by position.
CREATE OR REPLACE MACRO same_event(id, id_there) AS
    CASE
        WHEN id = id_there THEN id
        ELSE error('event ' || coalesce(id::VARCHAR, 'none') || ' stands where its links are those of ' || coalesce(id_there::VARCHAR, 'none'))
    END;
