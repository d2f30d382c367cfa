-- Events of the batch by the table that they go to.
SELECT p.target, count(*)
FROM parsed_events AS p
GROUP BY p.target
