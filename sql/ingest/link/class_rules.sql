-- The rules that name a kernel's class, the user's own file first on equal priority.
CREATE OR REPLACE TABLE class_rules AS
SELECT
    r.priority,
    row_number() OVER () AS position,
    r.regex,
    r.class,
    r.collective,
    r.vendor
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
    columns = {'priority': 'INTEGER', 'regex': 'VARCHAR', 'class': 'VARCHAR', 'collective': 'VARCHAR', 'vendor': 'VARCHAR'}
) AS r
