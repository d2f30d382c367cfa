-- Step contents of the two sides of a comparison, paired by keys that range from equal names to the same kind of
-- work.
--
-- A row is paired by the strictest key that both sides have among the unpaired rows. Rows without a pair are on one
-- side only. The keys are:
--
-- - 1: operator, shapes and kernel.
-- - 2: operator and shapes, with a different kernel.
-- - 3: operator and kernel, with different shapes.
-- - 4: operator.
-- - 5: kernel, with a different operator.
-- - 6: kind of work at the same position in the call tree.
-- - 7: kind of work in the same phase.
CREATE OR REPLACE MACRO lib._paired_contents(
    -- Name of a relation with the columns of lib.step_contents: the control.
    control_contents,
    -- Name of a relation with the columns of lib.step_contents: the test.
    test_contents,
    -- Operators and kernels with a different name in the test, each as name_in_test=name_in_control; NULL: none.
    renamed
) AS TABLE
-- Columns:
--   side                  VARCHAR         Side of the comparison: control or test.
--   rank                  INTEGER         Rank of the process.
--   step                  BIGINT          Profiler step; NULL if the trace has no steps and the row covers all of it.
--   part                  VARCHAR         Part as in step_contents.
--   pair_level            INTEGER [1]     Key of the pair, 1 to 7; NULL if the row is on one side only.
--   subject               VARCHAR         Name common to both sides: operator, collective, cause of idle time, or kind of work.
--   kernel                VARCHAR         Short name of the kernel; NULL for idle and host time.
--   shapes                VARCHAR         Input shapes as JSON; NULL if unknown.
--   module_or_annotation  VARCHAR         nn.Module or annotation that encloses the launch; NULL: none.
--   self_ns               BIGINT [ns]     Step time in this row.
--   op_count              BIGINT [count]  Number of operations that started.
WITH
    _names AS (
        SELECT map_from_entries(list_transform(
            coalesce(renamed::VARCHAR[], []),
            lambda pair: {'k': split_part(pair, '=', 1), 'v': substr(pair, instr(pair, '=') + 1)}
        )) AS other_name
    ),
    _sides AS MATERIALIZED (
        SELECT 'control' AS side, c.* FROM query_table(control_contents) AS c
        UNION ALL
        SELECT
            'test',
            t.* REPLACE (
                coalesce(n.other_name[t.operator], t.operator) AS operator,
                coalesce(n.other_name[t.kernel], t.kernel) AS kernel
            )
        FROM query_table(test_contents) AS t
        CROSS JOIN _names AS n
    ),
    _kinds AS (
        SELECT DISTINCT s.side, s.part, s.waits_for, s.operator, s.shapes, s.kernel, s.root, s.module_or_annotation, s.category, s.phase
        FROM _sides AS s
    ),
    _items AS MATERIALIZED (
        SELECT k.*, row_number() OVER (ORDER BY k.side, k.part) AS item FROM _kinds AS k
    ),
    _keyed AS MATERIALIZED (
        SELECT
            i.side,
            i.item,
            [
                concat_ws('|', 1, i.part, i.waits_for, '.' || i.operator, ',' || i.shapes, i.kernel),
                '2|' || i.part || '|' || i.operator || concat_ws('|', ',' || i.shapes, i.waits_for),
                concat_ws('|', 3, i.part, i.waits_for, '.' || i.operator, i.kernel),
                '4|' || i.part || '|' || i.operator || coalesce('|' || i.waits_for, ''),
                '5|' || i.part || '|' || i.kernel,
                '6|' || i.part || '|' || i.category || '|' || concat_ws('|', i.root, '.' || i.module_or_annotation),
                '7|' || i.part || '|' || i.category || '|' || i.phase
            ] AS keys,
            NULL::VARCHAR AS pair_key,
            NULL::INTEGER AS pair_level
        FROM _items AS i
    ),
    _level_1 AS MATERIALIZED (FROM lib._paired_level('_keyed', 1)),
    _level_2 AS MATERIALIZED (FROM lib._paired_level('_level_1', 2)),
    _level_3 AS MATERIALIZED (FROM lib._paired_level('_level_2', 3)),
    _level_4 AS MATERIALIZED (FROM lib._paired_level('_level_3', 4)),
    _level_5 AS MATERIALIZED (FROM lib._paired_level('_level_4', 5)),
    _level_6 AS MATERIALIZED (FROM lib._paired_level('_level_5', 6)),
    _level_7 AS MATERIALIZED (FROM lib._paired_level('_level_6', 7))
SELECT
    s.side, s.rank, s.step, s.part, p.pair_level,
    CASE
        WHEN s.part = 'lag' THEN 'host step minus device step'
        WHEN s.waits_for = 'host' THEN 'not launched yet'
        WHEN s.waits_for = 'device' THEN 'launched, not started'
        WHEN s.waits_for = 'unknown' THEN 'launch not in the trace'
        WHEN p.pair_level >= 5 THEN i.category || ', ' || i.phase
        ELSE coalesce(s.operator, s.kernel, 'no operator')
    END AS subject,
    s.kernel, s.shapes, s.module_or_annotation, s.self_ns, s.op_count
FROM _sides AS s
JOIN _items AS i
    ON i.side = s.side
    AND i.part = s.part
    AND i.waits_for IS NOT DISTINCT FROM s.waits_for
    AND i.operator IS NOT DISTINCT FROM s.operator
    AND i.shapes IS NOT DISTINCT FROM s.shapes
    AND i.kernel IS NOT DISTINCT FROM s.kernel
    AND i.root IS NOT DISTINCT FROM s.root
    AND i.module_or_annotation IS NOT DISTINCT FROM s.module_or_annotation
    AND i.category IS NOT DISTINCT FROM s.category
    AND i.phase IS NOT DISTINCT FROM s.phase
JOIN _level_7 AS p ON p.item = i.item
