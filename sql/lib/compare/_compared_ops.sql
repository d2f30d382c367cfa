-- Stable names of device activity for the comparison of runs: operator, shapes, kernel, and enclosing module or
-- phase.
--
-- A kernel whose launch is not in the trace gets the most frequent names of the same kernel and grid in its run, on
-- any rank. If there are none, it gets the most frequent names of kernels with the same name, and their shapes if all
-- of these kernels have the same shapes.
CREATE OR REPLACE MACRO lib._compared_ops(
    runs,
    ranks
) AS TABLE
-- Columns:
--   run                   VARCHAR  Run name.
--   rank                  INTEGER  Rank of the process.
--   event_id              BIGINT   Position of the event in traceEvents.
--   operator              VARCHAR  Launching operator, or the collective for communication; NULL: none.
--   shapes                VARCHAR  Input shapes as JSON; for communication, number and type of elements; NULL if unknown.
--   kernel                VARCHAR  Short name of the kernel.
--   root                  VARCHAR  Outermost operator that encloses the launch.
--   module_or_annotation  VARCHAR  nn.Module that encloses the launch, otherwise the user annotation; NULL: none.
--   category              VARCHAR  Kind of work, as in operation_categories; other if no rule matches.
--   phase                 VARCHAR  Training phase: forward, backward or optimizer.
WITH
    _launched AS MATERIALIZED (
        SELECT
            g.run, g.rank, g.event_id, g.name, g.op_id, g.module_id, g.annotation_id, g.bwd_op_id, g.class, g.collective,
            CASE WHEN g.class = 'communication' THEN concat_ws(' ', g.in_elems, g.elem_type) END AS message,
            {'name': g.name, 'x': g.grid_x, 'y': g.grid_y, 'z': g.grid_z, 'in_elems': g.in_elems} AS same
        FROM lib.scoped_gpu_ops(runs, NULL, NULL, true) AS g
    ),
    _described AS MATERIALIZED (
        FROM lib.described_ops('_launched')
    ),
    _kernels AS MATERIALIZED (
        SELECT s.name, lib.stable_name(s.short_name) AS kernel FROM lib.short_names('_launched') AS s
    ),
    _sides AS (
        SELECT 'kernel' AS side, k.name FROM _kernels AS k
    ),
    _categories AS MATERIALIZED (
        FROM lib.named_categories('_sides')
    ),
    _own AS MATERIALIZED (
        SELECT
            l.run, l.rank, l.event_id, l.name, l.same, l.class, l.message, l.collective, k.kernel,
            coalesce(c.category, 'other') AS kernel_category,
            CASE WHEN d.operator IS NOT NULL THEN {
                'operator': d.operator, 'shapes': d.shapes, 'root': d.root, 'module_or_annotation': d.module_or_annotation,
                'category': coalesce(d.operator_category, c.category, 'other'), 'phase': d.phase
            } END AS told
        FROM _launched AS l
        JOIN _described AS d ON d.run = l.run AND d.rank = l.rank AND d.event_id = l.event_id
        JOIN _kernels AS k ON k.name = l.name
        LEFT JOIN _categories AS c ON c.name = l.name
    ),
    _counted AS (
        SELECT o.run, o.same, o.told, count(*) AS op_count FROM _own AS o WHERE o.told IS NOT NULL GROUP BY o.run, o.same, o.told
    ),
    _elsewhere AS (
        SELECT c.run, c.same, arg_min(c.told, (-c.op_count, c.told::VARCHAR)) AS told FROM _counted AS c GROUP BY c.run, c.same
    ),
    _by_name AS (
        SELECT
            c.run, c.same.name AS name, count(DISTINCT c.told.shapes) AS shape_count, arg_min(c.told, (-c.op_count, c.told::VARCHAR)) AS told
        FROM _counted AS c
        GROUP BY c.run, c.same.name
    ),
    _completed AS (
        SELECT
            o.*,
            coalesce(o.told, e.told, n.told) AS found,
            o.told IS NULL AND e.told IS NULL AND n.shape_count > 1 AS shapes_differ
        FROM _own AS o
        LEFT JOIN _elsewhere AS e ON o.told IS NULL AND e.run = o.run AND e.same = o.same
        LEFT JOIN _by_name AS n ON o.told IS NULL AND n.run = o.run AND n.name = o.name
    )
SELECT
    c.run, c.rank, c.event_id,
    CASE WHEN c.class = 'communication' THEN coalesce(c.collective, c.found.operator) ELSE c.found.operator END AS operator,
    CASE WHEN c.class = 'communication' THEN nullif(c.message, '') WHEN NOT c.shapes_differ THEN c.found.shapes END AS shapes,
    c.kernel,
    c.found.root AS root,
    c.found.module_or_annotation AS module_or_annotation,
    CASE WHEN c.class = 'communication' THEN 'communication' ELSE coalesce(c.found.category, c.kernel_category) END AS category,
    coalesce(c.found.phase, 'forward') AS phase
FROM _completed AS c
WHERE lib.is_requested(ranks, c.rank)
