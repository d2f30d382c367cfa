-- Rules for kernel names, and the class of each name that a rule knows.

-- name: class_rules
-- The rules that name a kernel's class, the user's own file first on equal priority.
CREATE OR REPLACE TABLE class_rules AS
SELECT
    r.priority,
    row_number() OVER () AS position,
    r.regex,
    r.class,
    r.collective,
    r.vendor,
    r.library,
    r.role
FROM read_csv(
    $files,
    header = true,
    -- Nothing to detect: detection costs more than these few lines.
    auto_detect = false,
    delim = ',',
    quote = '"',
    escape = '"',
    buffer_size = 1_048_576,
    parallel = false,
    -- A user's own rules may end at the class.
    null_padding = true,
    columns = {'priority': 'INTEGER', 'regex': 'VARCHAR', 'class': 'VARCHAR', 'collective': 'VARCHAR', 'vendor': 'VARCHAR', 'library': 'VARCHAR', 'role': 'VARCHAR', 'source': 'VARCHAR'}
) AS r;

-- name: kernel_classes
-- The class of each distinct device activity name that some rule knows.
--
-- first_rule(name), made from `class_rules`, is the first rule that matches, as a chain of constant
-- expressions: compiled once each, where a join on the regex column compiles one for every pair.
CREATE OR REPLACE TABLE kernel_classes AS
WITH
    names AS (
        SELECT DISTINCT g.name
        FROM staged_gpu_ops AS g
    ),
    known_names AS (
        SELECT n.name, first_rule(n.name) AS first_rule
        FROM names AS n
    )
SELECT n.name, {'class': r.class, 'collective': r.collective, 'library': r.library, 'role': r.role} AS rule
FROM known_names AS n
JOIN class_rules AS r ON r.position = n.first_rule;
