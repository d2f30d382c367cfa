-- The text of each chunk that has to be walked.
SELECT p.chunk, p.refused_bytes
FROM parsed_events AS p
WHERE p.refused_bytes IS NOT NULL
ORDER BY p.chunk
