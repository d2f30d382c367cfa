-- Where so far $limit more events were lost than read; NULL: nowhere.
--
-- Counted up to each lost event by its number, so that chunks and batches do not matter.
WITH
    lost AS (
        SELECT q.byte_offset, 2 * row_number() OVER (ORDER BY q.event_id) - q.event_id - 1 AS excess
        FROM quarantined AS q
        WHERE q.is_lost AND q.event_id IS NOT NULL
    )
SELECT min(l.byte_offset)
FROM lost AS l
WHERE l.excess > $limit
