-- Events before each chunk of the batch; $first_event_id counts those of earlier batches.
CREATE OR REPLACE TABLE chunk_starts AS
SELECT
    p.chunk,
    count(*) AS event_count,
    ($first_event_id + sum(count(*)) OVER (ORDER BY p.chunk) - count(*))::BIGINT AS first_event_id
FROM parsed_events AS p
GROUP BY p.chunk
