-- Event ids during ingestion: the trace number above 40 bits for the position in the trace.
--
-- A trace ingested alone has number 0. Distinguishing traces costs it less than 1 % of CPU time.

-- name: part_of
-- Trace number of an event, stored above the 40 bits of the position.
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
