-- Query that the explorer suggests.
SELECT class, count(*) AS operations, sum(dur) AS dur_ns
FROM gpu_ops
GROUP BY ALL
