-- Table and column in which each known argument of a trace is stored; other arguments are in event_args.
CREATE OR REPLACE VIEW argument_columns AS
-- Columns:
--   table_name   VARCHAR  Name of the table.
--   column_name  VARCHAR  Name of the column; for a triple such as grid, the first of its three columns.
--   argument     VARCHAR  Name of the argument in the trace.
--   is_json      BOOLEAN  Whether the column, cast to VARCHAR, is the argument as JSON; otherwise the column is the argument's string value.
SELECT a.table_name, a.column_name, a.argument, a.is_json
FROM stored.argument_columns AS a
