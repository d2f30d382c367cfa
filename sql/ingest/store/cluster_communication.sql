-- Communication operators of MindSpore, by step.
SELECT j.run, j.rank, x.*
FROM staged_cluster_communication AS x
CROSS JOIN job AS j
ORDER BY x.step NULLS LAST, x.name NULLS LAST
