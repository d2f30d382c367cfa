-- Names without template arguments, parameters and return types (lib.short_name), evaluated once per distinct name.
CREATE OR REPLACE MACRO lib.short_names(
    -- Name of a relation with name.
    named_ops
) AS TABLE
-- Columns:
--   name        VARCHAR  Distinct names.
--   short_name  VARCHAR  Short name.
SELECT n.name AS name, lib.short_name(n.name) AS short_name
FROM (SELECT DISTINCT d.name FROM query_table(named_ops) AS d) AS n
