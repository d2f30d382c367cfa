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
FROM chunks AS c
