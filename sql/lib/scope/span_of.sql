-- Which recording of its rank an event is of, by its id: the rest of the id is its place in the file.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib.span_of(
    -- event_id of any table.
    id
) AS
-- Returns: INTEGER [1]  0, 1, … in order of time.
(id >> 32)::INTEGER
