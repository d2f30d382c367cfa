-- Steps as MindSpore measured them.
SELECT j.run, j.rank, x.*
FROM staged_cluster_step_traces AS x
CROSS JOIN job AS j
ORDER BY x.step NULLS LAST
