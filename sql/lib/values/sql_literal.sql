-- A text as a literal of SQL, for queries that are shown.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib.sql_literal(
    -- The text.
    plain
) AS
-- Returns: VARCHAR  In quotes; those inside are doubled.
'''' || replace(plain, '''', '''''') || ''''
