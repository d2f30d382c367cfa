-- What was lost or repaired of one batch: events that cannot be placed in time, and the flaws that
-- the salvage found.
--
-- $chunk_offsets: where each chunk starts in the file, for events whose own place in the chunk is
-- not known any more.
WITH
    set_aside AS (
        SELECT
            e.event_id,
            e.chunk,
            CASE
                WHEN e.ph IS NULL THEN 'not an event: no "ph" field'
                WHEN e.ts IS NULL THEN '"ts" is missing, not a number or out of range'
                WHEN e.ph = 'X' AND e.dur IS NULL THEN '"dur" is missing, not a number or out of range'
                ELSE '"ts" or "dur" is out of range'
            END AS reason,
            left(concat_ws(' ', e.ph, e.cat, e.name, e.args), 200) AS excerpt
        FROM batch_events AS e
        WHERE
            e.target = 'quarantine'
            AND NOT EXISTS (
                FROM flaws AS f
                WHERE f.is_lost AND f.chunk = e.chunk AND f.position = e.position
            )
    )
SELECT
    x.event_id,
    list_extract($chunk_offsets::BIGINT[], x.chunk + 1) AS byte_offset,
    NULL::BIGINT AS byte_count,
    true AS is_lost,
    x.reason,
    x.excerpt
FROM set_aside AS x
UNION ALL
SELECT s.first_event_id + f.position, f.byte_offset, f.byte_count, f.is_lost, f.reason, f.excerpt
FROM flaws AS f
JOIN chunk_starts AS s ON s.chunk = f.chunk
