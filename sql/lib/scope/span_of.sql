-- Recording of its rank that an event belongs to, by event_id; the rest of the id is the position in the file.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib.span_of(
    -- event_id of any table.
    id
) AS
-- Returns: INTEGER [1]  Number of the recording, from 0 in time order.
(id >> 32)::INTEGER
