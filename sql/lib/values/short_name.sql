-- Kernel name without template arguments, parameters and return type.
--
-- Names of copies and memsets, and names without < and (, are unchanged. Otherwise, -> is removed. Every > removes
-- everything back to the last < (or back to the start if there is no <). Every ) removes everything back to the last
-- opening parenthesis. The short name is the part after the last space. The expressions are compiled for each row;
-- for many rows, use lib.short_names, which evaluates each name once.
--
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
