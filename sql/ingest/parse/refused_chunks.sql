-- The text of each chunk that is not valid JSON.
SELECT p.chunk, p.refused_bytes
FROM parsed_events AS p
WHERE p.target = 'refused'
ORDER BY p.chunk
