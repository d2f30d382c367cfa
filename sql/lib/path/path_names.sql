-- Names in the paths of lib.costs_by_path, by hash.
CREATE OR REPLACE MACRO lib.path_names(
    runs,
    ranks
) AS TABLE
-- Columns:
--   name_hash  UBIGINT [1]  Hash of the name.
--   name       VARCHAR      Name of an event, without object addresses.
WITH
    _recorded AS (
        SELECT DISTINCT c.call_stack
        FROM cpu_ops AS c
        WHERE
            lib.is_requested(runs, c.run) AND lib.is_requested(ranks, c.rank)
            AND NOT EXISTS (FROM python_calls AS p WHERE p.run = c.run AND p.rank = c.rank)
    ),
    _names AS (
        SELECT DISTINCT s.name FROM stacks AS s WHERE lib.is_requested(runs, s.run) AND lib.is_requested(ranks, s.rank)
        UNION
        SELECT DISTINCT unnest(string_split(r.call_stack, ';')) FROM _recorded AS r
    )
SELECT DISTINCT hash(lib.frame_name(n.name)) AS name_hash, lib.frame_name(n.name) AS name
FROM _names AS n
