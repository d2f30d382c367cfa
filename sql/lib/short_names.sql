-- Names without template arguments, parameters and return types: what a person calls a kernel.
--
-- Names of copies and memsets stay as they are, and so does every name without < and (. Else -> goes,
-- every > takes what stands since the last < (since the start, where there is none), every ) what
-- stands since the last (, and what follows the last space is the short name.
--
-- Status: stable
-- Since: 0.1
-- Reference: HTA shorten_name
CREATE OR REPLACE MACRO lib.short_names(
    -- Name of a relation with name.
    named_ops
) AS TABLE
-- Columns:
--   name        VARCHAR  Name, each once.
--   short_name  VARCHAR  Short name.
SELECT
    n.name AS name,
    CASE
        WHEN regexp_matches(n.name, '^(Memcpy|Memset|dma)') OR NOT regexp_matches(n.name, '[<(]') THEN n.name
        ELSE
            regexp_extract(
                list_reduce(
                    regexp_extract_all(replace(n.name, '->', ''), '[^<>()]+|[<>()]'),
                    lambda kept, part: CASE part
                        WHEN '>' THEN CASE WHEN contains(kept, '<') THEN regexp_replace(kept, '<[^<]*$', '') ELSE '' END
                        WHEN ')' THEN CASE WHEN contains(kept, '(') THEN regexp_replace(kept, '\([^(]*$', '') ELSE '' END
                        ELSE kept || part
                    END,
                    ''
                ),
                '[^ ]*$'
            )
    END AS short_name
FROM (SELECT DISTINCT d.name FROM query_table(named_ops) AS d) AS n
