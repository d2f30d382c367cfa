-- What the salvage lost or had to repair of one batch.
SELECT
    s.first_event_id + f.position AS event_id,
    f.byte_offset,
    f.byte_count,
    f.is_lost,
    f.reason,
    f.excerpt
FROM flaws AS f
JOIN chunk_starts AS s ON s.chunk = f.chunk
