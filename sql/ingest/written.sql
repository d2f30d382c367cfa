-- Rows of one rank, of a table that is computed for several ranks at once.

-- name: ranks_written
-- The ranks that have rows in the table that is being written.
SELECT DISTINCT w.run, w.rank
FROM written AS w;

-- name: rows_of_rank
-- What a rank's file holds of the table that is being written, in its order.
SELECT w.*
FROM written AS w
WHERE w.run = $run AND w.rank = $rank;
