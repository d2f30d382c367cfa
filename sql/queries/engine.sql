-- Facts about the engine, and calls of single macros.

-- name: database
SELECT current_database();

-- name: is_locked
SELECT current_setting('lock_configuration');

-- name: syntax_tree
-- Tree of a query, or of an expression.
SELECT json_serialize_sql(CASE WHEN $is_expression THEN 'SELECT ' ELSE '' END || $body);

-- name: has_function
SELECT EXISTS (
    SELECT 1
    FROM duckdb_functions() AS f
    WHERE f.internal AND f.function_name = $name
);

-- name: macro_parameters
SELECT f.parameters, f.parameter_types
FROM duckdb_functions() AS f
WHERE f.schema_name = $schema AND f.function_name = $name AND f.function_type IN ('macro', 'table_macro');

-- name: message
SELECT lib.message_text($template, $fields::JSON);

-- name: short_names
SELECT list_transform($names::VARCHAR[], lambda x: lib.short_name(x));
