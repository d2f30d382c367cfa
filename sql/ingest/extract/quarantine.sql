-- Events of one batch that cannot be placed in time, with the reason.
CREATE OR REPLACE TEMP VIEW extracted_quarantine AS
SELECT
    p.chunk,
    p.position,
    e.event_id,
    CASE
        WHEN e.ph IS NULL THEN 'not an event: no "ph" field'
        WHEN e.ts IS NULL THEN '"ts" is missing, not a number or out of range'
        ELSE '"dur" is missing, not a number or out of range'
    END AS reason
FROM parsed_events AS p
JOIN chunk_starts AS s ON s.chunk = p.chunk
JOIN batch_events AS e ON e.event_id = s.first_event_id + p.position
WHERE p.target = 'quarantine' AND e.target = 'quarantine'
