-- What MindSpore says of the whole rank.
SELECT j.run, j.rank, x.*
FROM staged_cluster_ranks AS x
CROSS JOIN job AS j
ORDER BY ALL
