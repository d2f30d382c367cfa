-- Short names of kernels (lib.short_name) that stay distinct within each run: where several names have the same short
-- name, the template arguments in which they differ are appended.
--
-- For example, gemm<128, 64, float> and gemm<128, 32, float> become gemm<…64…> and gemm<…32…>. The names of a group are
-- split at the first argument in which they differ, at most four times. Each of these arguments is shown without its
-- namespace, or with the innermost one if it is needed, and with at most 40 characters. Names that are still equal get
-- a number in alphabetical order. The result depends on the other names of the run in the relation, so compare kernels of
-- different runs by their full names.
CREATE OR REPLACE MACRO lib.distinct_short_names(
    -- Name of a relation with run, name.
    named_ops
) AS TABLE
-- Columns:
--   run         VARCHAR  Run name.
--   name        VARCHAR  Distinct names of the run.
--   short_name  VARCHAR  Short name; different for each name of the run.
WITH
    _of_names AS MATERIALIZED (
        SELECT
            n.name,
            -- Short names omit (anonymous namespace), which leaves two consecutive ::.
            CASE WHEN starts_with(n.name, '_Z') THEN lib._demangled_name(n.name) ELSE replace(n.short_name, '::::', '::') END AS short_name
        FROM lib.short_names(named_ops) AS n
    ),
    _shortened AS MATERIALIZED (
        SELECT d.run, n.name, n.short_name
        FROM (SELECT DISTINCT o.run, o.name FROM query_table(named_ops) AS o) AS d
        JOIN _of_names AS n ON n.name = d.name
    ),
    _split_0 AS (
        SELECT
            s.name, [s.run, s.short_name] AS path,
            regexp_extract_all(s.name, CASE WHEN starts_with(s.name, '_Z') THEN '[0-9]+|[A-Za-z_]+' ELSE '[^<>(), ]+' END) AS parts
        FROM _shortened AS s
        QUALIFY count(*) OVER (PARTITION BY s.run, s.short_name) > 1
    ),
    _split_1 AS (
        FROM lib._split_paths('_split_0')
    ),
    _split_2 AS (
        FROM lib._split_paths('_split_1')
    ),
    _split_3 AS (
        FROM lib._split_paths('_split_2')
    ),
    _split_4 AS (
        FROM lib._split_paths('_split_3')
    ),
    -- The last component of a qualified name shows most arguments apart; the last two are needed for a::Gemm and b::Gemm.
    _labels AS (
        SELECT
            s.path[1] AS run, s.name, s.path[2] AS short_name,
            array_to_string(list_filter(list_transform(s.path[3:], lambda x: left(regexp_extract(x, '[^:]*$'), 40)), lambda x: x != ''), ', ') AS last_component,
            array_to_string(list_filter(list_transform(s.path[3:], lambda x: left(regexp_extract(x, '([^:]+::)?[^:]*$'), 40)), lambda x: x != ''), ', ') AS last_components
        FROM _split_4 AS s
    ),
    _chosen AS (
        SELECT l.run, l.name, CASE WHEN count(*) OVER (PARTITION BY l.run, l.short_name, l.last_component) > 1 THEN l.last_components ELSE l.last_component END AS shown
        FROM _labels AS l
    ),
    _labeled AS (
        SELECT s.run, s.name, s.short_name || coalesce('<…' || nullif(c.shown, '') || '…>', '') AS label
        FROM _shortened AS s
        LEFT JOIN _chosen AS c ON c.run = s.run AND c.name = s.name
    ),
    _numbered AS (
        SELECT b.*, count(*) OVER (PARTITION BY b.run, b.label) AS equal_count, row_number() OVER (PARTITION BY b.run, b.label ORDER BY b.name) AS position
        FROM _labeled AS b
    )
SELECT n.run AS run, n.name AS name, CASE WHEN n.equal_count > 1 THEN n.label || ' #' || n.position ELSE n.label END AS short_name
FROM _numbered AS n
