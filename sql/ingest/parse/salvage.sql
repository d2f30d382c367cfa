-- Chunks rejected by the parser: removed, repaired event by event, and parsed again.

-- name: flaws
-- Spans of rejected chunks of one batch that the repair could not read or had to change.
CREATE OR REPLACE TABLE flaws (
    chunk BIGINT,
    position BIGINT,
    byte_offset BIGINT,
    byte_count BIGINT,
    is_lost BOOLEAN,
    reason VARCHAR,
    excerpt VARCHAR
);

-- name: refused_chunks
-- Text of each chunk that must be repaired.
SELECT p.chunk, p.refused_bytes
FROM parsed_events AS p
WHERE p.refused_bytes IS NOT NULL
ORDER BY p.chunk;

-- name: drop_refused
-- Remove rejected chunks before their repaired text is added.
DELETE FROM parsed_events AS p
WHERE p.target = 'refused';

-- name: drop_tried
-- Remove single events that were parsed only as a test; such events have a negative chunk number.
DELETE FROM parsed_events AS p
WHERE p.chunk < 0;

-- name: add_flaws
-- Add the flaws of a few chunks, which $flaws contains.
INSERT INTO flaws
WITH
    new AS (
        SELECT unnest(
            $flaws::STRUCT(chunk BIGINT, "position" BIGINT, byte_offset BIGINT, byte_count BIGINT, is_lost BOOLEAN, reason VARCHAR, excerpt VARCHAR)[]
        ) AS f
    )
SELECT n.f.chunk, n.f."position", n.f.byte_offset, n.f.byte_count, n.f.is_lost, n.f.reason, n.f.excerpt
FROM new AS n;
