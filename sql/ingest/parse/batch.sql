-- Parsed events of one batch of chunks: counted, numbered by position in `traceEvents`.

-- name: event_counts
-- Events of the batch by their trace and by the table that they go to.
SELECT p.chunk >> 32, p.target, count(*)
FROM parsed_events AS p
GROUP BY p.chunk >> 32, p.target;

-- name: drop_traces
-- The traces of the batch that are to be read each by itself: those with $parts as their number.
DELETE FROM parsed_events AS p
WHERE list_contains($parts::BIGINT[], p.chunk >> 32);

-- name: chunk_starts
-- Events before each chunk of the batch; $first_event_ids: the id of the first event of each trace in it; $read:
-- the chunks that were read without a statement.
--
-- The number of its trace stands above the 32 bits that the number of a chunk needs.
CREATE OR REPLACE TABLE chunk_starts AS
WITH
    counted AS (
        SELECT p.chunk, count(*) AS event_count
        FROM parsed_events AS p
        GROUP BY p.chunk
    ),
    read AS (
        SELECT unnest($read::STRUCT(chunk BIGINT, event_count BIGINT)[]) AS r
    ),
    chunks AS (
        SELECT c.chunk, c.event_count
        FROM counted AS c
        UNION ALL
        SELECT r.r.chunk, r.r.event_count
        FROM read AS r
    )
SELECT
    c.chunk,
    c.event_count,
    (
        list_extract($first_event_ids::BIGINT[], (c.chunk >> 32) + 1)
        + sum(c.event_count) OVER (PARTITION BY c.chunk >> 32 ORDER BY c.chunk) - c.event_count
    )::BIGINT AS first_event_id
FROM chunks AS c;

-- name: batch_events
-- The events of the current batch with their number: the position in `traceEvents`.
--
-- `chunk_starts(chunk, first_event_id)` counts the events before each chunk; it is made after the
-- parse, so that chunks may be parsed in any order and by any number of threads.
CREATE OR REPLACE VIEW batch_events AS
SELECT s.first_event_id + p.position AS event_id, p.* EXCLUDE (refused_bytes)
FROM parsed_events AS p
JOIN chunk_starts AS s ON s.chunk = p.chunk;
