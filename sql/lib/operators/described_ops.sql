-- Stable description of operations for comparing runs: operator, shapes, enclosing module, category and phase.
--
-- Names are normalized with lib.stable_name.
CREATE OR REPLACE MACRO lib.described_ops(
    -- Name of a relation with run, rank, event_id, op_id (the operator itself, or its launching operator), module_id,
    -- annotation_id, bwd_op_id.
    some_ops
) AS TABLE
-- Columns:
--   run                   VARCHAR  Run name.
--   rank                  INTEGER  Rank of the process.
--   event_id              BIGINT   Position of the event in traceEvents.
--   operator              VARCHAR  Operator name without overload; NULL: none.
--   shapes                VARCHAR  Input shapes of the operator as JSON; NULL if unknown.
--   root                  VARCHAR  Outermost enclosing operator, or the operator itself.
--   module_or_annotation  VARCHAR  Enclosing nn.Module, otherwise the user annotation; NULL: none.
--   operator_category     VARCHAR  Kind of work, as in operation_categories; NULL if no rule matches the operator.
--   phase                 VARCHAR  Training phase: forward, backward or optimizer.
WITH
    _refs AS MATERIALIZED (
        SELECT DISTINCT s.run, s.rank, s.op_id FROM query_table(some_ops) AS s WHERE s.op_id IS NOT NULL
    ),
    _around AS MATERIALIZED (
        FROM lib.operators_around('_refs')
    ),
    _operators AS MATERIALIZED (
        SELECT c.run, c.rank, c.event_id, c.name, c.input_dims, a.outer_name, a.is_backward
        FROM cpu_ops AS c
        JOIN _refs AS r ON r.run = c.run AND r.rank = c.rank AND r.op_id = c.event_id
        LEFT JOIN _around AS a ON a.run = c.run AND a.rank = c.rank AND a.op_id = c.event_id
    ),
    _placed AS MATERIALIZED (
        SELECT
            s.run, s.rank, s.event_id, o.name, o.input_dims, o.outer_name, coalesce(m.name, t.name) AS place_name,
            CASE
                WHEN s.bwd_op_id IS NOT NULL OR o.is_backward THEN 'backward'
                WHEN starts_with(t.name, 'Optimizer.') THEN 'optimizer'
                ELSE 'forward'
            END AS phase
        FROM query_table(some_ops) AS s
        LEFT JOIN _operators AS o ON o.run = s.run AND o.rank = s.rank AND o.event_id = s.op_id
        LEFT JOIN python_calls AS m ON m.run = s.run AND m.rank = s.rank AND m.event_id = s.module_id
        LEFT JOIN annotations AS t ON t.run = s.run AND t.rank = s.rank AND t.event_id = s.annotation_id
    ),
    _raw_names AS (
        SELECT DISTINCT p.name FROM _placed AS p
        UNION
        SELECT DISTINCT p.outer_name FROM _placed AS p
        UNION
        SELECT DISTINCT p.place_name FROM _placed AS p
    ),
    _steady AS MATERIALIZED (
        SELECT n.name, lib.op_base_name(n.name) AS base_name, lib.stable_name(lib.op_base_name(n.name)) AS steady
        FROM _raw_names AS n
        WHERE n.name IS NOT NULL
    ),
    _sides AS (
        SELECT 'operator' AS side, n.base_name AS name FROM _steady AS n
    ),
    _categories AS MATERIALIZED (
        FROM lib.named_categories('_sides')
    )
SELECT
    p.run AS run, p.rank AS rank, p.event_id AS event_id, o.steady AS operator, p.input_dims AS shapes,
    r.steady AS root, w.steady AS module_or_annotation, c.category AS operator_category, p.phase AS phase
FROM _placed AS p
LEFT JOIN _steady AS o ON o.name = p.name
LEFT JOIN _steady AS r ON r.name = p.outer_name
LEFT JOIN _steady AS w ON w.name = p.place_name
LEFT JOIN _categories AS c ON c.name = o.base_name
