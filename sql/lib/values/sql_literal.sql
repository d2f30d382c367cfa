-- String as an SQL literal, for displayed queries.
CREATE OR REPLACE MACRO lib.sql_literal(
    -- String to quote.
    plain
) AS
-- Returns: VARCHAR  String in single quotes, with the quotes inside doubled.
'''' || replace(plain, '''', '''''') || ''''
