-- Lost or repaired events of a trace, with their offset in the file.
--
-- An event with a missing or invalid time is pending until its offset is known: the engine parses whole chunks and
-- does not report the offset of an event.

-- name: quarantined
-- Lost or repaired events; filled batch by batch.
CREATE OR REPLACE TABLE quarantined (
    event_id BIGINT,
    byte_offset BIGINT,
    byte_count BIGINT,
    is_lost BOOLEAN,
    reason VARCHAR,
    excerpt VARCHAR
);

-- name: add_quarantined
-- A problem with the file itself, such as a truncated end.
INSERT INTO quarantined VALUES ($event_id, $byte_offset, $byte_count, $is_lost, $reason, $excerpt);

-- name: flaws_of_batch
-- Events of one batch that were lost or repaired.
SELECT
    s.first_event_id + f.position AS event_id,
    f.byte_offset,
    f.byte_count,
    f.is_lost,
    f.reason,
    f.excerpt
FROM flaws AS f
JOIN chunk_starts AS s ON s.chunk = f.chunk;

-- name: pending
-- Events without a usable time whose offset in the file is not known yet; filled batch by batch.
CREATE OR REPLACE TABLE pending_events (
    event_id BIGINT,
    chunk BIGINT,
    position BIGINT,
    chunk_offset BIGINT,
    reason VARCHAR
);

-- name: add_pending
-- Events of one batch without a usable time, except events lost during repair.
--
-- $chunk_offsets: start of each chunk in the file.
INSERT INTO pending_events
SELECT
    e.event_id,
    e.chunk,
    e.position,
    list_extract($chunk_offsets::BIGINT[], e.chunk + 1) AS chunk_offset,
    CASE
        WHEN e.ph IS NULL THEN 'not an event: no "ph" field'
        WHEN e.ts IS NULL THEN '"ts" is missing, not a number or out of range'
        WHEN e.ph = 'X' AND e.dur IS NULL THEN '"dur" is missing, not a number or out of range'
        ELSE '"ts" or "dur" is out of range'
    END AS reason
FROM batch_events AS e
WHERE
    e.target = 'quarantine'
    AND NOT EXISTS (
        FROM flaws AS f
        WHERE f.is_lost AND f.chunk = e.chunk AND f.position = e.position
    );

-- name: pending_chunks
-- Chunks with a pending event.
SELECT DISTINCT a.chunk
FROM pending_events AS a;

-- name: offsets
-- Offsets of pending events in the file [bytes], and their first characters.
CREATE OR REPLACE TABLE event_offsets (
    chunk BIGINT,
    position BIGINT,
    byte_offset BIGINT,
    byte_count BIGINT,
    excerpt VARCHAR
);

-- name: add_offsets
-- `offsets_found` streams every event of the chunks with a pending event.
INSERT INTO event_offsets
SELECT p.chunk, p."position", p.byte_offset, p.byte_count, p.excerpt
FROM offsets_found AS p
SEMI JOIN pending_events AS a ON a.chunk = p.chunk AND a.position = p."position";

-- name: quarantine_pending
-- Pending events with their offset, or the offset of their chunk if the file no longer exists.
INSERT INTO quarantined
SELECT a.event_id, coalesce(p.byte_offset, a.chunk_offset), p.byte_count, true, a.reason, p.excerpt
FROM pending_events AS a
LEFT JOIN event_offsets AS p ON p.chunk = a.chunk AND p.position = a.position;

-- name: first_flaw
-- First flaw in the file.
SELECT q.byte_offset, q.reason, q.excerpt
FROM quarantined AS q
ORDER BY q.byte_offset, q.event_id
LIMIT 1;

-- name: too_many_broken
-- Offset at which $limit more events had been lost than read; NULL if there is none.
--
-- For each lost event, counts the events up to its position, so the result does not depend on the division into chunks
-- and batches.
WITH
    lost AS (
        SELECT q.byte_offset, 2 * row_number() OVER (ORDER BY q.event_id) - q.event_id - 1 AS excess
        FROM quarantined AS q
        WHERE q.is_lost AND q.event_id IS NOT NULL
    )
SELECT min(l.byte_offset)
FROM lost AS l
WHERE l.excess > $limit;
