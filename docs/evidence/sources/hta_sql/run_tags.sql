-- A row a tag of a run, and one that every run has.
SELECT run, 'every run' AS tag FROM runs
UNION ALL
SELECT run, tag || '=' || tag_value FROM run_tags
ORDER BY ALL
