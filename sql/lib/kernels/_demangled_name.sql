-- Qualified name in a mangled C++ name, without template arguments and parameters.
--
-- Each part of the name follows its length: _ZN7cutlass6KernelI… is cutlass::Kernel. The expressions are compiled for
-- each row, so call this macro once per distinct name.
CREATE OR REPLACE MACRO lib._demangled_name(
    -- Name of an operation.
    mangled
) AS
-- Returns: VARCHAR  Name as in the source code; the unchanged name if it is not mangled this way.
CASE
    WHEN NOT regexp_matches(mangled, '^_ZN?K?[0-9]') THEN mangled
    ELSE
        -- The result so far, followed by | and the remaining string.
        replace(
            regexp_extract(
                list_reduce(
                    list_transform(range(12), lambda i: i::VARCHAR),
                    lambda state, i: CASE
                        WHEN NOT regexp_matches(state, '\|[0-9]+') THEN state
                        ELSE
                            regexp_extract(state, '^(.*)\|', 1)
                            || '::'
                            || substr(regexp_extract(state, '\|[0-9]+(.*)$', 1), 1, regexp_extract(state, '\|([0-9]+)', 1)::BIGINT)
                            || '|'
                            || substr(regexp_extract(state, '\|[0-9]+(.*)$', 1), regexp_extract(state, '\|([0-9]+)', 1)::BIGINT + 1)
                    END,
                    '|' || regexp_replace(mangled, '^_ZN?K?', '')
                ),
                '^::(.*)\|',
                1
            ),
            '_GLOBAL__N_1',
            '(anonymous namespace)'
        )
END
