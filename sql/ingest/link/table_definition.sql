-- The statement that makes a staged table again, without rows: that of this rank, since an engine may hold several ranks at once.
SELECT t.sql
FROM duckdb_tables() AS t
WHERE t.table_name = $table_name AND t.database_name = current_database() AND t.schema_name = current_schema()
