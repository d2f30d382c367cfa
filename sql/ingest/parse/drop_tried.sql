-- Single events that were parsed only to see whether they can be: their chunk number is negative.
DELETE FROM parsed_events AS p
WHERE p.chunk < 0
