-- The ranks that have rows in the table that is being written.
SELECT DISTINCT w.run, w.rank
FROM written AS w
