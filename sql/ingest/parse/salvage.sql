-- Chunks that the parser refuses: taken out, repaired event by event, parsed again.

-- name: flaws
-- Spans of refused chunks that the salvage could not read or had to change, of one batch.
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
-- The text of each chunk that has to be walked.
SELECT p.chunk, p.refused_bytes
FROM parsed_events AS p
WHERE p.refused_bytes IS NOT NULL
ORDER BY p.chunk;

-- name: drop_refused
-- Their repaired text takes the place of the chunks that were refused.
DELETE FROM parsed_events AS p
WHERE p.target = 'refused';

-- name: drop_tried
-- Single events that were parsed only to see whether they can be: their chunk number is negative.
DELETE FROM parsed_events AS p
WHERE p.chunk < 0;

-- name: add_flaws
-- $flaws: a few chunks' worth of them.
INSERT INTO flaws
WITH
    new AS (
        SELECT unnest(
            $flaws::STRUCT(chunk BIGINT, "position" BIGINT, byte_offset BIGINT, byte_count BIGINT, is_lost BOOLEAN, reason VARCHAR, excerpt VARCHAR)[]
        ) AS f
    )
SELECT n.f.chunk, n.f."position", n.f.byte_offset, n.f.byte_count, n.f.is_lost, n.f.reason, n.f.excerpt
FROM new AS n;
