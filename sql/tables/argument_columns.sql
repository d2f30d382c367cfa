-- Which column of which table holds an argument of the trace; what none holds is in event_args.
CREATE OR REPLACE VIEW argument_columns AS
-- Columns:
--   table_name   VARCHAR  Table.
--   column_name  VARCHAR  Column; of a triple such as grid the first of three.
--   argument     VARCHAR  Name of the argument in the trace.
--   is_json      BOOLEAN  Whether the column, as text, is the argument's JSON; else it is the text itself.
SELECT a.table_name, a.column_name, a.argument, a.is_json
FROM stored.argument_columns AS a
