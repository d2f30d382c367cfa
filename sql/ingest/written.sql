-- Rows of one rank in a table that is computed for several ranks at once.

-- name: ranks_written
-- Ranks with rows in the table that is being written.
SELECT DISTINCT w.run, w.rank
FROM written AS w;

-- name: rows_of_rank
-- Rows of one rank's file in the table that is being written, in stored order.
SELECT w.*
FROM written AS w
WHERE w.run = $run AND w.rank = $rank;
