-- Events of the batch by their trace and by the table that they go to.
SELECT p.chunk >> 32, p.target, count(*)
FROM parsed_events AS p
GROUP BY p.chunk >> 32, p.target
