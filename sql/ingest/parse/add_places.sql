-- `places_found` streams every event of the chunks that were walked.
INSERT INTO places
SELECT p.chunk, p."position", p.byte_offset, p.byte_count, p.excerpt
FROM places_found AS p
SEMI JOIN set_aside AS a ON a.chunk = p.chunk AND a.position = p."position"
