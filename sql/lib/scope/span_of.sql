-- Number of the rank's recording that contains an event, from its event_id; the lower 32 bits of the id are the
-- event's position in the file.
CREATE OR REPLACE MACRO lib.span_of(
    -- event_id of any table.
    id
) AS
-- Returns: INTEGER [1]  Number of the recording, from 0 in time order.
(id >> 32)::INTEGER
