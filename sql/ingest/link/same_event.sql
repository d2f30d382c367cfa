-- The id of an event, of which the rows of two tables say that it is theirs: tables joined by position.
CREATE OR REPLACE MACRO same_event(id, id_there) AS
    CASE
        WHEN id = id_there THEN id
        ELSE error('event ' || coalesce(id::VARCHAR, 'none') || ' stands where its links are those of ' || coalesce(id_there::VARCHAR, 'none'))
    END
