-- Tables of a MindSpore cluster.

-- name: cluster_communication
-- Communication operators of MindSpore, by step.
SELECT j.run, j.rank, x.*
FROM staged_cluster_communication AS x
CROSS JOIN job AS j
ORDER BY x.step NULLS LAST, x.name NULLS LAST;

-- name: cluster_links
-- Links between ranks, by step and communication operator.
SELECT j.run, j.rank, x.*
FROM staged_cluster_links AS x
CROSS JOIN job AS j
ORDER BY x.step NULLS LAST, x.operator NULLS LAST, x.src_rank NULLS LAST, x.dst_rank NULLS LAST, x.link_type NULLS LAST;

-- name: cluster_ranks
-- Properties of the whole rank recorded by MindSpore.
SELECT j.run, j.rank, x.*
FROM staged_cluster_ranks AS x
CROSS JOIN job AS j
ORDER BY ALL;

-- name: cluster_step_traces
-- Steps as measured by MindSpore.
SELECT j.run, j.rank, x.*
FROM staged_cluster_step_traces AS x
CROSS JOIN job AS j
ORDER BY x.step NULLS LAST;
