-- Events of one batch that cannot be placed in time; what the salvage lost is among the flaws.
--
-- $chunk_offsets: where each chunk starts in the file.
INSERT INTO set_aside
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
    )
