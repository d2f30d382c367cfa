-- The statement that makes a staged table again, without rows.
SELECT t.sql
FROM duckdb_tables() AS t
WHERE t.table_name = $table_name
