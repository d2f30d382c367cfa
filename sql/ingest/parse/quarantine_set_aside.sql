-- Events that were set aside, with their place; that of their chunk where the file has gone.
INSERT INTO quarantined
SELECT a.event_id, coalesce(p.byte_offset, a.chunk_offset), p.byte_count, true, a.reason, p.excerpt
FROM set_aside AS a
LEFT JOIN places AS p ON p.chunk = a.chunk AND p.position = a.position
