-- One row per process group listed in the trace; an impossible size, according to argument_forms.csv, is NULL.
WITH
    groups AS (
        SELECT
            m.part,
            unnest(from_json(
                m.metadata -> '$.distributedInfo.pg_config',
                '[{"pg_name": "VARCHAR", "pg_desc": "VARCHAR", "backend_config": "VARCHAR", "pg_size": "BIGINT", "ranks": "VARCHAR"}]'
            )) AS g
        FROM job AS m
        WHERE json_type(m.metadata -> '$.distributedInfo.pg_config') = 'ARRAY'
    )
SELECT
    j.run,
    j.rank,
    x.g.pg_name,
    x.g.pg_desc,
    x.g.backend_config,
    CASE WHEN x.g.pg_size BETWEEN 1 AND 16777216 THEN x.g.pg_size END AS pg_size,
    -- Long lists are valid here: a group of the whole job has thousands of ranks.
    CASE WHEN has_form_ranks(x.g.ranks) OR TRY_CAST(x.g.ranks AS INTEGER[]) IS NOT NULL THEN ranks_in_run(x.g.ranks, j.first_rank) END AS pg_ranks
FROM groups AS x
JOIN job AS j ON j.part = x.part
ORDER BY ALL
