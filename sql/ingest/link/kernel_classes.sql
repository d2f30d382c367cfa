-- Rules for kernel names, and the class of each name that a rule matches.

-- name: class_rules
-- Rules that determine the class of a kernel from its name; at equal priority, rules in the user's own file come first.
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
    -- The CSV format is given, because detecting it would take longer than reading the few lines.
    auto_detect = false,
    delim = ',',
    quote = '"',
    escape = '"',
    buffer_size = 1_048_576,
    parallel = false,
    -- A user's own rules may omit the columns after class.
    null_padding = true,
    columns = {'priority': 'INTEGER', 'regex': 'VARCHAR', 'class': 'VARCHAR', 'collective': 'VARCHAR', 'vendor': 'VARCHAR', 'library': 'VARCHAR', 'role': 'VARCHAR', 'source': 'VARCHAR'}
) AS r;

-- name: kernel_names
-- Distinct names of device activity.
CREATE OR REPLACE TABLE kernel_names AS
SELECT DISTINCT g.name
FROM staged_gpu_ops AS g;

-- name: rules_in_order
-- Rules that match at least one name, in order of precedence.
--
-- Each rule in first_rule costs 0.3 ms to bind, whether it matches or not, so rules without a match are left out. All
-- names are joined into one string, one name per line, so that each rule is compiled and run once here. A rule with an
-- anchor for the whole string, or with flags, is always included.
WITH
    names AS (
        SELECT string_agg(n.name, chr(10)) AS text
        FROM kernel_names AS n
    )
SELECT r.position, r.regex
FROM class_rules AS r
CROSS JOIN names AS n
WHERE contains(r.regex, '\A') OR contains(r.regex, '\z') OR contains(r.regex, '(?') OR regexp_matches(n.text, '(?im)' || r.regex)
ORDER BY r.priority, r.position;

-- name: kernel_classes
-- Class of each distinct name of device activity that some rule matches.
--
-- first_rule(name), generated from `class_rules`, returns the first matching rule as a chain of constant expressions.
-- Each expression is compiled once, whereas a join on the regex column compiles one for every pair.
CREATE OR REPLACE TABLE kernel_classes AS
WITH
    known_names AS (
        SELECT n.name, first_rule(n.name) AS first_rule
        FROM kernel_names AS n
    )
SELECT n.name, {'class': r.class, 'collective': r.collective, 'library': r.library, 'role': r.role} AS rule
FROM known_names AS n
JOIN class_rules AS r ON r.position = n.first_rule;
