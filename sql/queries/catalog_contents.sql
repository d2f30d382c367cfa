-- Contents of a store's catalog as lines of text; catalogs with the same lines are equal.
SELECT 'view' AS kind, concat_ws('.', v.schema_name, v.view_name) AS name, concat_ws(chr(10), v.sql, v.comment) AS content
FROM duckdb_views() AS v
WHERE NOT v.internal
UNION ALL
SELECT 'macro', concat_ws('.', f.schema_name, f.function_name), concat_ws(chr(10), f.parameters::VARCHAR, f.macro_definition, f.comment)
FROM duckdb_functions() AS f
WHERE NOT f.internal
UNION ALL
SELECT 'column', concat_ws('.', c.schema_name, c.table_name, c.column_name), concat_ws(chr(10), c.data_type, c.comment)
FROM duckdb_columns() AS c
WHERE NOT c.internal
UNION ALL
SELECT 'rank', concat_ws(' ', r.run, r.rank), to_json(r)::VARCHAR
FROM stored.rank_scope AS r
UNION ALL
SELECT 'tag', t.run, to_json(t)::VARCHAR
FROM stored.run_tags AS t
UNION ALL
SELECT 'manifest', 'copy', md5(m.content)
FROM stored.manifest_copy AS m
ORDER BY ALL
