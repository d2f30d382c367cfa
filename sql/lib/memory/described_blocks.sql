-- Code that allocated memory blocks, and the category of each block as derived from the surrounding calls.
--
-- Categories use the terms of torch, but are derived from where a block was allocated and freed, not from its
-- tensors:
--
-- - parameter: allocated by the constructor of a torch module, or while a module was moved (includes buffers).
-- - temporary: freed before the outermost operator around the allocation ended. In the backward pass, freed before
--   the operator in operator_name ended; in the optimizer, freed within the same optimizer step.
-- - input: allocated by a data loader.
-- - optimizer state: allocated in the optimizer step and not freed in it.
-- - autograd: allocated and freed in the backward pass.
-- - gradient: allocated in the backward pass and not freed in it.
-- - activation: allocated before the backward pass and freed in it, or allocated in an nn.Module call and freed
--   outside operators.
--
-- For other blocks, the category is NULL.
CREATE OR REPLACE MACRO lib.described_blocks(
    -- Name of a relation with the columns of lib.memory_blocks.
    some_blocks,
    -- Python frames to attribute to their caller, as a regular expression; NULL: none.
    hidden
) AS TABLE
-- Columns:
--   run            VARCHAR  Run name.
--   rank           INTEGER  Rank of the process.
--   allocation_id  BIGINT   event_id of the allocation; blocks whose allocation is not in the trace are not returned.
--   operator_name  VARCHAR  Innermost operator that encloses the allocation and does more than allocate; NULL outside operators.
--   module         VARCHAR  nn.Module call that encloses the allocation or, in the backward pass, the forward operator; NULL if there is none or it is unknown.
--   frame          VARCHAR  Innermost Python frame that encloses the allocation or, in the backward pass, the forward operator, and that does not match hidden; NULL if there is none or it is unknown.
--   category       VARCHAR  parameter, temporary, input, optimizer state, autograd, gradient or activation; NULL if unknown.
WITH RECURSIVE
    _seen AS MATERIALIZED (
        SELECT
            b.run, b.rank, b.allocation_id, b.state, b.freed_ts, b.op_id, b.free_op_id, b.annotation_id, b.module_id, b.stack_id
        FROM query_table(some_blocks) AS b
        WHERE b.allocation_id IS NOT NULL
    ),
    _op_refs AS MATERIALIZED (
        SELECT s.run, s.rank, s.op_id FROM _seen AS s
        UNION
        SELECT s.run, s.rank, s.free_op_id FROM _seen AS s
    ),
    _called AS MATERIALIZED (
        FROM lib.operators_around('_op_refs')
    ),
    _annotated AS (
        SELECT a.run, a.rank, a.event_id, a.name, a.ts + a.dur AS end_ts
        FROM annotations AS a
        SEMI JOIN _seen AS s ON s.run = a.run AND s.rank = a.rank AND s.annotation_id = a.event_id
    ),
    _wanted AS MATERIALIZED (
        SELECT s.run, s.rank, s.stack_id FROM _seen AS s WHERE s.stack_id IS NOT NULL
        UNION
        SELECT c.run, c.rank, c.forward_stack_id FROM _called AS c WHERE c.forward_stack_id IS NOT NULL
    ),
    _names AS MATERIALIZED (
        SELECT
            k.run, k.rank, k.stack_id, k.parent_stack_id, k.name,
            k.kind = 'frame' AND (hidden IS NULL OR NOT regexp_matches(k.name, hidden)) AS is_shown,
            k.kind = 'frame' AND regexp_matches(k.name, '(^|/)torch/nn/modules/\w+\.py\(\d+\): (__init__|reset_parameters|_apply)$') AS makes
        FROM stacks AS k
        SEMI JOIN _wanted AS w ON w.run = k.run AND w.rank = k.rank
    ),
    _climbing(run, rank, stack_id, at_id, height) AS (
        SELECT w.run, w.rank, w.stack_id, w.stack_id, 0 FROM _wanted AS w
        UNION ALL
        SELECT n.run, n.rank, n.stack_id, k.parent_stack_id, n.height + 1
        FROM _climbing AS n
        JOIN _names AS k ON k.run = n.run AND k.rank = n.rank AND k.stack_id = n.at_id
        WHERE k.parent_stack_id IS NOT NULL
    ),
    _framed AS MATERIALIZED (
        SELECT
            n.run, n.rank, n.stack_id, lib.frame_name(arg_min(k.name, n.height) FILTER (k.is_shown)) AS frame, bool_or(k.makes) AS makes
        FROM _climbing AS n
        JOIN _names AS k ON k.run = n.run AND k.rank = n.rank AND k.stack_id = n.at_id
        GROUP BY n.run, n.rank, n.stack_id
    ),
    _modules AS (
        SELECT p.run, p.rank, p.event_id, lib.module_name(p.name) AS name
        FROM python_calls AS p
        WHERE starts_with(p.name, 'nn.Module: ')
    )
SELECT
    s.run,
    s.rank,
    s.allocation_id,
    c.operator_name,
    m.name AS module,
    coalesce(w.frame, u.frame) AS frame,
    CASE
        WHEN s.state = 'suspect' THEN NULL
        WHEN s.freed_ts <= CASE WHEN c.is_backward THEN c.operator_end_ts ELSE c.outer_end_ts END THEN 'temporary'
        WHEN u.makes THEN 'parameter'
        WHEN starts_with(a.name, 'enumerate(DataLoader)') THEN 'input'
        WHEN starts_with(a.name, 'Optimizer.step#') AND s.freed_ts <= a.end_ts THEN 'temporary'
        WHEN starts_with(a.name, 'Optimizer.step#') THEN 'optimizer state'
        -- A module called in the backward pass recomputes its activations.
        WHEN c.is_backward AND s.module_id IS NULL THEN CASE WHEN f.is_backward THEN 'autograd' ELSE 'gradient' END
        WHEN f.is_backward OR s.module_id IS NOT NULL AND s.state = 'freed' THEN 'activation'
    END AS category
FROM _seen AS s
LEFT JOIN _called AS c ON c.run = s.run AND c.rank = s.rank AND c.op_id = s.op_id
LEFT JOIN _called AS f ON f.run = s.run AND f.rank = s.rank AND f.op_id = s.free_op_id
LEFT JOIN _framed AS u ON u.run = s.run AND u.rank = s.rank AND u.stack_id = s.stack_id
LEFT JOIN _framed AS w ON c.is_backward AND w.run = s.run AND w.rank = s.rank AND w.stack_id = c.forward_stack_id
LEFT JOIN _annotated AS a ON a.run = s.run AND a.rank = s.rank AND a.event_id = s.annotation_id
LEFT JOIN _modules AS m ON m.run = s.run AND m.rank = s.rank AND m.event_id = coalesce(s.module_id, c.forward_module_id)
