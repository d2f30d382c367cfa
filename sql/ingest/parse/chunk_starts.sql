-- Events before each chunk of the batch; $first_event_ids: the id of the first event of each trace in it.
--
-- The number of its trace stands above the 32 bits that the number of a chunk needs.
CREATE OR REPLACE TABLE chunk_starts AS
SELECT
    p.chunk,
    count(*) AS event_count,
    (
        list_extract($first_event_ids::BIGINT[], (p.chunk >> 32) + 1)
        + sum(count(*)) OVER (PARTITION BY p.chunk >> 32 ORDER BY p.chunk) - count(*)
    )::BIGINT AS first_event_id
FROM parsed_events AS p
GROUP BY p.chunk
