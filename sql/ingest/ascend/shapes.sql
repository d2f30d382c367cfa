-- Operator inputs as written by the Ascend profiler, converted to lists: "2,3;\r\n4" ─▶ [[2,3],[4]].
--
-- One string contains all inputs of an operator, separated by semicolons. The strings stay in event_args.
UPDATE staged_cpu_ops AS c
SET
    input_dims = CASE WHEN has_form_dims(l.dims) THEN l.dims END,
    input_types = CASE WHEN has_form_names(l.types) THEN l.types END,
    odd_arguments = nullif(list_filter(
        c.odd_arguments,
        lambda name: NOT (name = 'Input Dims' AND has_form_dims(l.dims) OR name = 'Input type' AND has_form_names(l.types))
    ), [])
FROM (
    SELECT
        x.event_id,
        CASE
            WHEN x.dims = '' AND x.types = '' THEN '[]'
            ELSE '[' || array_to_string(list_transform(string_split(x.dims, ';'), lambda sizes: '[' || sizes || ']'), ',') || ']'
        END AS dims,
        CASE
            WHEN x.types = '' THEN '[]'
            ELSE '[' || array_to_string(list_transform(string_split(x.types, ';'), lambda name: '"' || name || '"'), ',') || ']'
        END AS types
    FROM (
        SELECT
            o.event_id,
            regexp_replace(o.args ->> '$."Input Dims"', '\s', '', 'g') AS dims,
            regexp_replace(o.args ->> '$."Input type"', '\s', '', 'g') AS types
        FROM staged_cpu_ops AS o
        WHERE list_has_any(o.odd_arguments, ['Input Dims', 'Input type'])
    ) AS x
) AS l
WHERE l.event_id = c.event_id
