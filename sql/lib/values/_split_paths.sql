-- Lists of parts with one more element in their path: the first part that is not common to all lists with that path.
--
-- The common start of several lists is the common start of the first and the last of them in order. A list that is
-- alone on its path keeps the path.
CREATE OR REPLACE MACRO lib._split_paths(
    -- Name of a relation with name, path, parts.
    split_rows
) AS TABLE
-- Columns:
--   name   VARCHAR    Name.
--   path   VARCHAR[]  Path, with one more element if several lists have the same path; the element is empty if they are equal, or if this list ends there.
--   parts  VARCHAR[]  Parts of the name.
WITH
    _ends AS (
        SELECT s.path, count(*) AS name_count, min(s.parts) AS first, max(s.parts) AS last
        FROM query_table(split_rows) AS s
        GROUP BY s.path
    ),
    _branches AS (
        SELECT e.path, e.name_count, list_position(list_transform(list_zip(e.first, e.last), lambda x: x[1] IS DISTINCT FROM x[2]), true) AS position
        FROM _ends AS e
    )
SELECT
    s.name AS name,
    CASE WHEN b.name_count = 1 THEN s.path ELSE list_append(s.path, coalesce(s.parts[b.position], '')) END AS path,
    s.parts AS parts
FROM query_table(split_rows) AS s
JOIN _branches AS b ON b.path = s.path
