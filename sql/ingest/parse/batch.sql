-- Parsed events of one batch of chunks: counts, and numbering by position in `traceEvents`.

-- name: event_counts
-- Number of events in the batch by trace and target table.
SELECT p.chunk >> 32, p.target, count(*)
FROM parsed_events AS p
GROUP BY p.chunk >> 32, p.target;

-- name: drop_traces
-- Remove the traces of the batch that must be ingested individually; $parts has their numbers.
DELETE FROM parsed_events AS p
WHERE list_contains($parts::BIGINT[], p.chunk >> 32);

-- name: chunk_starts
-- Id of the first event in each chunk of the batch, from the number of events in the chunks before it.
--
-- $first_event_ids has the id of the first event of each trace in the batch, and $read the event counts of chunks that
-- the compiled reader has read. In a chunk id, the trace number is above the 32 bits of the chunk number.
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
-- Events of the current batch with their event_id, from the position in `traceEvents`.
--
-- `chunk_starts` has the id of the first event in each chunk. It is computed after parsing, so chunks can be parsed in
-- any order and by any number of threads.
CREATE OR REPLACE VIEW batch_events AS
SELECT s.first_event_id + p.position AS event_id, p.* EXCLUDE (refused_bytes)
FROM parsed_events AS p
JOIN chunk_starts AS s ON s.chunk = p.chunk;
