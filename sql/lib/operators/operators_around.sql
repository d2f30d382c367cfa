-- Context of operators: reported name, outermost enclosing operator, and whether they are in the backward pass.
--
-- An operator that only allocates, such as aten::empty, is reported as the innermost enclosing operator that does
-- more.
CREATE OR REPLACE MACRO lib.operators_around(
    -- Name of a relation of operators with run, rank and op_id; NULLs and duplicates are ignored.
    named_ops
) AS TABLE
-- Columns:
--   run               VARCHAR      Run name.
--   rank              INTEGER      Rank of the process.
--   op_id             BIGINT       event_id of the operator.
--   operator_name     VARCHAR      Reported name: the operator itself, or its caller if it only allocates.
--   operator_end_ts   BIGINT [ns]  End of the reported operator.
--   outer_end_ts      BIGINT [ns]  End of the outermost enclosing operator, or of the operator itself.
--   outer_name        VARCHAR      Name of that operator without overload.
--   is_backward       BOOLEAN      Whether the operator runs in the backward pass.
--   forward_module_id BIGINT       event_id of the nn.Module call of its forward operator; NULL if unknown.
--   forward_stack_id  BIGINT       Stack of its forward operator; NULL if unknown.
WITH RECURSIVE
    _lanes AS MATERIALIZED (
        SELECT d.run, d.rank, row_number() OVER (ORDER BY d.run, d.rank) << 40 AS lane
        FROM (SELECT DISTINCT r.run, r.rank FROM query_table(named_ops) AS r WHERE r.op_id IS NOT NULL) AS d
    ),
    _wanted AS MATERIALIZED (
        SELECT DISTINCT l.lane + r.op_id AS id
        FROM query_table(named_ops) AS r
        JOIN _lanes AS l ON l.run = r.run AND l.rank = r.rank
        WHERE r.op_id IS NOT NULL
    ),
    _parents AS MATERIALIZED (
        SELECT l.lane + c.event_id AS id, l.lane + c.parent_op_id AS parent_id
        FROM cpu_ops AS c
        JOIN _lanes AS l ON l.run = c.run AND l.rank = c.rank
        WHERE c.parent_op_id IS NOT NULL
    ),
    _climbing(id, at_id, height) AS (
        SELECT w.id, w.id, 0 FROM _wanted AS w
        UNION ALL
        SELECT n.id, p.parent_id, n.height + 1
        FROM _climbing AS n
        JOIN _parents AS p ON p.id = n.at_id
    ),
    _named AS MATERIALIZED (
        SELECT
            l.run, l.rank, l.lane, l.lane + c.event_id AS at_id, c.ts + c.dur AS end_ts, c.fwd_op_id,
            lib.op_base_name(c.name) AS name,
            lib.is_backward_op(c.name, c.fwd_op_id) AS is_backward,
            CASE
                WHEN starts_with(c.name, 'aten::empty') OR starts_with(c.name, 'aten::new_empty') OR starts_with(c.name, 'aten::resize_') THEN 1000000
                ELSE 0
            END AS says_nothing
        FROM cpu_ops AS c
        JOIN _lanes AS l ON l.run = c.run AND l.rank = c.rank
        SEMI JOIN _climbing AS n ON n.at_id = l.lane + c.event_id
    ),
    _around AS (
        SELECT
            n.id,
            arg_min(n.at_id, n.height + m.says_nothing) AS known_id,
            arg_max(m.end_ts, n.height) AS outer_end_ts,
            arg_max(m.name, n.height) AS outer_name,
            bool_or(m.is_backward) AS is_backward,
            arg_min(m.fwd_op_id, n.height) FILTER (m.fwd_op_id IS NOT NULL) AS fwd_op_id
        FROM _climbing AS n
        JOIN _named AS m ON m.at_id = n.at_id
        GROUP BY n.id
    )
SELECT
    k.run,
    k.rank,
    a.id - k.lane AS op_id,
    k.name AS operator_name,
    k.end_ts AS operator_end_ts,
    a.outer_end_ts,
    a.outer_name,
    a.is_backward,
    f.module_id AS forward_module_id,
    f.stack_id AS forward_stack_id
FROM _around AS a
JOIN _named AS k ON k.at_id = a.known_id
LEFT JOIN cpu_ops AS f ON f.run = k.run AND f.rank = k.rank AND f.event_id = a.fwd_op_id
