-- Table and column that store each argument of the trace; other arguments are in event_args.
CREATE OR REPLACE VIEW argument_columns AS
-- Columns:
--   table_name   VARCHAR  Name of the table.
--   column_name  VARCHAR  Name of the column; for a triple such as grid, the first of three.
--   argument     VARCHAR  Name of the argument in the trace.
--   is_json      BOOLEAN  Whether the column cast to VARCHAR is the JSON of the argument; otherwise it is the string itself.
SELECT a.table_name, a.column_name, a.argument, a.is_json
FROM stored.argument_columns AS a
