-- Rows of each rank in a table that is computed for several runs at once, and in a file that several ranks share.

-- name: rows_of_ranks
-- Rows of the ranks that share a file, in stored order.
SELECT w.*
FROM written AS w
WHERE w.run = $run AND list_contains($ranks, w.rank);

-- name: rows_by_rank
-- Number of rows of each rank in a file.
SELECT f.rank, count(*) AS row_count
FROM read_parquet($path, hive_partitioning = false) AS f
GROUP BY f.rank;
