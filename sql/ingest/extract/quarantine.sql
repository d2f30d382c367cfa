-- Events of one batch that cannot be placed in time, with the reason. `args` stands for the rest.
CREATE OR REPLACE TEMP VIEW extracted_quarantine AS
SELECT
    e.event_id,
    e.chunk,
    e.position,
    CASE
        WHEN e.ph IS NULL THEN 'not an event: no "ph" field'
        WHEN e.ts IS NULL THEN '"ts" is missing, not a number or out of range'
        ELSE '"dur" is missing, not a number or out of range'
    END AS reason,
    left(concat_ws(' ', e.ph, e.cat, e.name, e.args), 200) AS excerpt
FROM batch_events AS e
WHERE e.target = 'quarantine'
ORDER BY e.event_id
