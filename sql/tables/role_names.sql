-- Names of folders and files by which the role of a process is recognized, and names that are no role.
--
-- A built-in table, the same for every store: sql/tables/role_names.csv. A pattern is a regular expression that matches
-- a part of a name between separators, in any case, with or without a number behind it: decode, decode-1, my_decode. A
-- name that a pattern without a role matches states no role. Names count only if the traces state two roles or more.
CREATE OR REPLACE VIEW role_names AS
-- Columns:
--   pattern  VARCHAR  Regular expression for a part of a name.
--   role     VARCHAR  Role of the process; NULL: the name is of a phase of one process.
--   source   VARCHAR  Software that uses the name.
SELECT
    x.pattern,
    x.role,
    x.source
FROM stored.role_names AS x
