-- Text as an SQL literal, for displayed queries.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib.sql_literal(
    -- Text to quote.
    plain
) AS
-- Returns: VARCHAR  Text in single quotes, with quotes inside doubled.
'''' || replace(plain, '''', '''''') || ''''
