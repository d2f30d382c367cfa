-- What could not be read as an event, where it stands in the file and why.
SELECT
    j.run,
    j.rank,
    j.source,
    q.event_id,
    q.byte_offset,
    q.byte_count,
    q.is_lost,
    q.reason,
    q.excerpt
FROM quarantined AS q
CROSS JOIN job AS j
ORDER BY q.byte_offset, q.event_id
