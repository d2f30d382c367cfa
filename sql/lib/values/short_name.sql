-- A name without template arguments, parameters and return type: what a person calls a kernel.
--
-- Names of copies and memsets stay as they are, and so does every name without < and (. Else -> goes,
-- every > takes what stands since the last < (since the start, where there is none), every ) what
-- stands since the last (, and what follows the last space is the short name. Its expressions are
-- compiled for each row: over many rows ask lib.short_names, which looks at each name once.
--
-- Status: stable
-- Since: 0.1
-- Reference: HTA shorten_name
CREATE OR REPLACE MACRO lib.short_name(
    -- Name of an operation.
    long_name
) AS
-- Returns: VARCHAR  Short name.
CASE
    WHEN regexp_matches(long_name, '^((hip)?(Memcpy|Memset)|dma)') OR NOT regexp_matches(long_name, '[<(]') THEN long_name
    ELSE
        regexp_extract(
            list_reduce(
                regexp_extract_all(replace(long_name, '->', ''), '[^<>()]+|[<>()]'),
                lambda kept, part: CASE part
                    WHEN '>' THEN CASE WHEN contains(kept, '<') THEN regexp_replace(kept, '<[^<]*$', '') ELSE '' END
                    WHEN ')' THEN CASE WHEN contains(kept, '(') THEN regexp_replace(kept, '\([^(]*$', '') ELSE '' END
                    ELSE kept || part
                END,
                ''
            ),
            '[^ ]*$'
        )
END
