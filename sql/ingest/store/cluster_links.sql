-- Links between ranks, by step and communication operator.
SELECT j.run, j.rank, x.*
FROM staged_cluster_links AS x
CROSS JOIN job AS j
ORDER BY x.step NULLS LAST, x.operator NULLS LAST, x.src_rank NULLS LAST, x.dst_rank NULLS LAST, x.link_type NULLS LAST
