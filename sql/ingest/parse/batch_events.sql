-- The events of the current batch with their number: the position in `traceEvents`.
--
-- `chunk_starts(chunk, first_event_id)` counts the events before each chunk; it is made after the
-- parse, so that chunks may be parsed in any order and by any number of threads.
CREATE OR REPLACE VIEW batch_events AS
SELECT s.first_event_id + p.position AS event_id, p.* EXCLUDE (refused_bytes)
FROM parsed_events AS p
JOIN chunk_starts AS s ON s.chunk = p.chunk
