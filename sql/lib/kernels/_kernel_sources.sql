-- Source of each compiled kernel in one row: lines of model code, fused operators, and how they were found.
CREATE OR REPLACE MACRO lib._kernel_sources(
    -- Name of a relation with the columns of lib.kernel_source_frames.
    frames
) AS TABLE
-- Columns:
--   run              VARCHAR     Run name.
--   rank             INTEGER     Rank of the process.
--   name             VARCHAR     Kernel name.
--   source_file      VARCHAR     File of the lines; NULL if unknown, or if there are several.
--   source_line      BIGINT [1]  Line of model code; NULL if unknown, or if there are several.
--   source_lines     VARCHAR     All lines as file:line, separated by commas; NULL if unknown.
--   fused_operators  VARCHAR     Nodes of the compiled graph, which are named after their operators; NULL if unknown.
--   source_method    VARCHAR     Most exact method that found the source: event, kernel name or operator name.
WITH
    _lines AS (
        SELECT f.run, f.rank, f.name, f.file, f.line
        FROM query_table(frames) AS f
        WHERE f.file IS NOT NULL
        GROUP BY ALL
    ),
    _located AS (
        SELECT
            l.run, l.rank, l.name,
            CASE WHEN count(DISTINCT l.file) = 1 THEN any_value(l.file) END AS source_file,
            CASE WHEN count(*) = 1 THEN any_value(l.line) END AS source_line,
            string_agg(format('{}:{}', l.file, l.line), ', ' ORDER BY l.file, l.line) AS source_lines
        FROM _lines AS l
        GROUP BY l.run, l.rank, l.name
    ),
    _nodes AS (
        SELECT DISTINCT f.run, f.rank, f.name, unnest(f.nodes) AS node FROM query_table(frames) AS f
    ),
    _fused AS (
        SELECT n.run, n.rank, n.name, string_agg(n.node, ', ' ORDER BY n.node) AS fused_operators
        FROM _nodes AS n
        GROUP BY n.run, n.rank, n.name
    ),
    _methods AS (
        SELECT f.run, f.rank, f.name, arg_min(f.method, f.priority) AS source_method
        FROM query_table(frames) AS f
        GROUP BY f.run, f.rank, f.name
    )
SELECT m.run, m.rank, m.name, o.source_file, o.source_line, o.source_lines, u.fused_operators, m.source_method
FROM _methods AS m
LEFT JOIN _located AS o ON o.run = m.run AND o.rank = m.rank AND o.name = m.name
LEFT JOIN _fused AS u ON u.run = m.run AND u.rank = m.rank AND u.name = m.name
