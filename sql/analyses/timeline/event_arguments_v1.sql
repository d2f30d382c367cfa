-- Arguments of host and device events as recorded in the trace, one row per event and argument.
--
-- Names are as in the trace, such as "Input Dims" or "blocks per SM", and values are JSON. Arguments that are null in
-- the trace are omitted. If a table column stores the argument, an older spelling is returned under the current name
-- ("external id", used in 2021, as "External id"; "size", used for MTIA, as "bytes").
--
-- Title: Arguments of events
-- Status: stable
-- Since: 0.1
-- Reference: HTA ParserConfig(args, parse_all_args)
-- Needs: events
-- Scope: runs, ranks; arguments have no steps of their own
CREATE OR REPLACE MACRO event_arguments_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    -- Names of arguments in the trace; NULL means every argument.
    arguments VARCHAR[] := NULL
) AS TABLE
-- Columns:
--   run         VARCHAR  Run name.
--   rank        INTEGER  Rank of the process.
--   event_id    BIGINT   Position of the event in traceEvents.
--   argument    VARCHAR  Name of the argument.
--   value_json  VARCHAR  Value of the argument as JSON.
WITH
    -- Scan only tables that store a requested argument.
    tables AS (
        SELECT list(DISTINCT m.table_name) AS wanted
        FROM argument_columns AS m
        WHERE lib.is_requested(arguments, m.argument)
    ),
    operators AS (
        SELECT c.*
        FROM cpu_ops AS c
        CROSS JOIN tables AS t
        WHERE list_contains(t.wanted, 'cpu_ops') AND lib.is_requested(runs, c.run) AND lib.is_requested(ranks, c.rank)
    ),
    activity AS (
        SELECT
            g.* REPLACE (
                -- A collective derived from the kernel name is not an argument.
                CASE WHEN g.class_source = 'metadata' THEN g.collective END AS collective,
                '[' || g.grid_x || ',' || g.grid_y || ',' || g.grid_z || ']' AS grid_x,
                '[' || g.block_x || ',' || g.block_y || ',' || g.block_z || ']' AS block_x
            )
        FROM gpu_ops AS g
        CROSS JOIN tables AS t
        WHERE list_contains(t.wanted, 'gpu_ops') AND lib.is_requested(runs, g.run) AND lib.is_requested(ranks, g.rank)
    ),
    ranges AS (
        SELECT a.*
        FROM annotations AS a
        CROSS JOIN tables AS t
        WHERE list_contains(t.wanted, 'annotations') AND lib.is_requested(runs, a.run) AND lib.is_requested(ranks, a.rank)
    ),
    calls AS (
        SELECT r.*
        FROM runtime_calls AS r
        CROSS JOIN tables AS t
        WHERE list_contains(t.wanted, 'runtime_calls') AND lib.is_requested(runs, r.run) AND lib.is_requested(ranks, r.rank)
    ),
    frames AS (
        SELECT p.*
        FROM python_calls AS p
        CROSS JOIN tables AS t
        WHERE list_contains(t.wanted, 'python_calls') AND lib.is_requested(runs, p.run) AND lib.is_requested(ranks, p.rank)
    ),
    of_columns AS (
        SELECT 'cpu_ops' AS table_name, c.* FROM lib._cells('operators') AS c
        UNION ALL
        SELECT 'gpu_ops', c.* FROM lib._cells('activity') AS c
        UNION ALL
        SELECT 'annotations', c.* FROM lib._cells('ranges') AS c
        UNION ALL
        SELECT 'runtime_calls', c.* FROM lib._cells('calls') AS c
        UNION ALL
        SELECT 'python_calls', c.* FROM lib._cells('frames') AS c
    ),
    -- If a column cannot represent an argument, event_args keeps all arguments of the event, including arguments that
    -- columns store.
    of_texts AS (
        SELECT x.run, x.rank, x.event_id, x.args
        FROM event_args AS x
        UNION ALL
        SELECT o.run, o.rank, o.event_id, o.args
        FROM other_events AS o
        WHERE o.phase = 'X'
    ),
    -- If args is a list, a number or null, it has no keys.
    keyed AS (
        SELECT t.run, t.rank, t.event_id, t.args, unnest(json_keys(t.args)) AS argument
        FROM of_texts AS t
        WHERE lib.is_requested(runs, t.run) AND lib.is_requested(ranks, t.rank)
    ),
    -- Use a JSON pointer, in which only ~ and / of a key need escaping. A text may repeat a key.
    text_pairs AS MATERIALIZED (
        SELECT
            k.run, k.rank, k.event_id, k.argument,
            any_value((k.args -> ('/' || replace(replace(k.argument, '~', '~0'), '/', '~1')))::VARCHAR) AS value_json
        FROM keyed AS k
        WHERE lib.is_requested(arguments, k.argument)
        GROUP BY k.run, k.rank, k.event_id, k.argument
        HAVING any_value((k.args -> ('/' || replace(replace(k.argument, '~', '~0'), '/', '~1')))::VARCHAR) <> 'null'
    ),
    column_pairs AS (
        SELECT
            c.run, c.rank, c.event_id, m.argument,
            CASE WHEN m.is_json THEN c.cell ELSE to_json(c.cell)::VARCHAR END AS value_json
        FROM of_columns AS c
        JOIN argument_columns AS m ON m.table_name = c.table_name AND m.column_name = c.column_name
        WHERE lib.is_requested(arguments, m.argument) AND NOT (m.is_json AND c.cell = 'null')
    ),
    pairs AS (
        FROM text_pairs
        UNION ALL
        SELECT c.*
        FROM column_pairs AS c
        ANTI JOIN text_pairs AS t ON t.event_id = c.event_id AND t.rank = c.rank AND t.run = c.run AND t.argument = c.argument
    )
SELECT p.run, p.rank, p.event_id, p.argument, p.value_json
FROM pairs AS p
ORDER BY p.run, p.rank, p.event_id, p.argument
