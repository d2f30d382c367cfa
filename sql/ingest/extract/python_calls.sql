-- Python frames of one batch (with_stack=True), module calls among them.
WITH
    decoded AS (
        SELECT
            e.*,
            from_json(
                exact_args(e.args, 'Python id|Python parent id|Python module id|Ev Idx'),
                '{"Python id": "BIGINT", "Python parent id": "BIGINT", "Python module id": "BIGINT", "Ev Idx": "BIGINT"}'
            ) AS a
        FROM batch_events AS e
        WHERE e.target = 'python_calls'
    ),
    columns AS (
        SELECT
            d.event_id,
            d.ts,
            d.dur,
            d.pid,
            d.tid,
            d.name,
            d.a['Python id'] AS python_id,
            d.a['Python parent id'] AS python_parent_id,
            d.a['Python module id'] AS python_module_id,
            d.a['Ev Idx'] AS profiler_event_index,
            d.args
        FROM decoded AS d
    )
SELECT
    c.* EXCLUDE (args),
    CASE
        WHEN NOT starts_with(c.args, '{') OR len(json_keys(c.args)) <> (
            (c.python_id IS NOT NULL)::INTEGER + (c.python_parent_id IS NOT NULL)::INTEGER
            + (c.python_module_id IS NOT NULL)::INTEGER + (c.profiler_event_index IS NOT NULL)::INTEGER
        ) THEN c.args
    END AS args
FROM columns AS c
