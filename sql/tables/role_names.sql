-- Patterns for folder and file names that identify the role of a process, and for names that identify no role.
--
-- A built-in table, the same for every store: sql/tables/role_names.csv. A pattern is a regular expression for one part
-- of a name between separators. Case is ignored, and a number may follow: decode, decode-1, my_decode. A name that
-- matches a pattern without a role identifies no role. Names are used only if the traces state two roles or more.
CREATE OR REPLACE VIEW role_names AS
-- Columns:
--   pattern  VARCHAR  Regular expression for a part of a name.
--   role     VARCHAR  Role of the process; NULL: the name denotes a phase of one process.
--   source   VARCHAR  Software that uses the name.
SELECT x.*
FROM stored.role_names AS x
