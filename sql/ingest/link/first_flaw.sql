-- The first thing in the file that is not as it should be.
SELECT q.byte_offset, q.reason, q.excerpt
FROM quarantined AS q
ORDER BY q.byte_offset, q.event_id
LIMIT 1
