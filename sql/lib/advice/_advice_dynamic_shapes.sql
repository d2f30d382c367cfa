-- Advice: at least a tenth of matrix products, convolutions and attention calls have shapes that no previous step
-- had.
--
-- Shapes are compared from the second step on, if there are at least three steps. New shapes must occur in more than
-- half of these steps, so a smaller last batch does not count. The saving covers only recompilation, because the
-- trace does not record repeated work in libraries and the allocator.
CREATE OR REPLACE MACRO lib._advice_dynamic_shapes(
    -- Name of a relation with the columns of lib.step_sums.
    spans,
    -- Name of a relation with the columns of lib._advice_host.
    host,
    runs,
    ranks,
    -- Profiler steps to include; NULL means every step.
    steps,
    include_last_profiler_step
) AS TABLE
-- Columns: those of _advice_by_rule.
WITH
    _calls AS (
        SELECT c.run, c.rank, c.step, c.name, c.input_dims, count(*) AS call_count, arg_min(c.event_id, (c.ts, c.event_id)) AS event_id
        FROM cpu_ops AS c
        WHERE
            c.step IS NOT NULL AND c.input_dims IS NOT NULL
            AND c.name IN (
                'aten::mm', 'aten::addmm', 'aten::bmm', 'aten::baddbmm', 'aten::conv1d', 'aten::conv2d', 'aten::conv3d',
                'aten::scaled_dot_product_attention'
            )
            AND lib.is_requested(runs, c.run) AND lib.is_requested(ranks, c.rank) AND lib.is_requested(steps, c.step)
            AND (include_last_profiler_step OR NOT c.in_last_step)
        GROUP BY ALL
    ),
    _seen AS (
        SELECT
            c.*, c.step = min(c.step) OVER (PARTITION BY c.run, c.rank, c.name, c.input_dims) AS is_new,
            c.step = min(c.step) OVER (PARTITION BY c.run, c.rank) AS is_first
        FROM _calls AS c
    ),
    _operators AS (
        SELECT
            s.run, s.rank, s.name, count(DISTINCT s.input_dims) AS shape_count,
            sum(CASE WHEN s.is_new AND NOT s.is_first THEN s.call_count ELSE 0 END)::BIGINT AS new_count,
            min(CASE WHEN s.is_new AND NOT s.is_first THEN s.event_id END) AS event_id
        FROM _seen AS s
        GROUP BY s.run, s.rank, s.name
    ),
    _subjects AS (
        SELECT o.run, o.rank, arg_max({'name': o.name, 'shape_count': o.shape_count, 'event_id': o.event_id}, (o.new_count, o.name)) AS most
        FROM _operators AS o
        GROUP BY o.run, o.rank
    ),
    _found AS (
        SELECT
            s.run, s.rank, count(DISTINCT s.step) AS step_count,
            count(DISTINCT CASE WHEN s.is_new THEN s.step END) AS changed_count,
            sum(CASE WHEN s.is_new THEN s.call_count ELSE 0 END)::BIGINT AS new_count,
            sum(s.call_count)::BIGINT AS call_count
        FROM _seen AS s
        WHERE NOT s.is_first
        GROUP BY s.run, s.rank
    )
SELECT
    f.run, f.rank, 'dynamic_shapes' AS rule, m.most.name AS subject, f.new_count AS event_count,
    c.affected_ns, c.exposed_ns AS saved_ns, 'medium' AS confidence, m.most.event_id AS event_id,
    CASE
        WHEN c.affected_ns IS NULL
            THEN lib.message('advice.dynamic_shapes', {'new_pct': 100 * (f.new_count / f.call_count), 'shape_count': m.most.shape_count, 'operator': m.most.name})
        ELSE lib.message(
            'advice.dynamic_shapes_compiled',
            {'new_pct': 100 * (f.new_count / f.call_count), 'shape_count': m.most.shape_count, 'operator': m.most.name, 'compile_pct': c.affected_pct}
        )
    END AS message,
    format(
        'SELECT step, name, input_dims, count(*) FROM cpu_ops WHERE run = {} AND rank = {} AND name = {} GROUP BY ALL ORDER BY ALL',
        lib.sql_literal(f.run), f.rank, lib.sql_literal(m.most.name)
    ) AS evidence_sql,
    'operator_unique_args' AS next_analysis
FROM _found AS f
JOIN _subjects AS m ON m.run = f.run AND m.rank = f.rank
JOIN query_table(spans) AS s ON s.run = f.run AND s.rank = f.rank
LEFT JOIN query_table(host) AS c ON c.run = f.run AND c.rank = f.rank AND c.kind = 'compilation'
WHERE f.step_count >= 2 AND 2 * f.changed_count > f.step_count AND 10 * f.new_count >= f.call_count
