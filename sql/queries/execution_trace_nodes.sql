-- Nodes of a PyTorch execution trace (Chakra), parsed from the JSON string in $text.
--
-- Since schema 1.0.2, the fields inputs and outputs contain shapes and types, and a list of attributes contains the
-- other values. In earlier versions, all values are fields of the node itself.
WITH
    texts AS (
        SELECT unnest(json_extract($text, '$.nodes[*]')) AS text
    ),
    nodes AS (
        SELECT from_json(t.text, '{
            "id": "BIGINT", "name": "VARCHAR", "ctrl_deps": "BIGINT", "parent": "BIGINT",
            "attrs": [{"name": "VARCHAR", "value": "VARCHAR"}], "rf_id": "BIGINT", "op_schema": "VARCHAR",
            "inputs": "JSON", "input_shapes": "JSON", "input_types": "JSON",
            "outputs": "JSON", "output_shapes": "JSON", "output_types": "JSON"
        }') AS node
        FROM texts AS t
    )
SELECT
    n.node.id AS node_id,
    n.node.name AS name,
    coalesce(n.node.ctrl_deps, n.node.parent) AS parent_id,
    coalesce(
        (list_filter(n.node.attrs, lambda attr: attr.name = 'rf_id')[1].value)::BIGINT,
        n.node.rf_id
    ) AS record_function_id,
    coalesce(list_filter(n.node.attrs, lambda attr: attr.name = 'op_schema')[1].value, n.node.op_schema) AS op_schema,
    coalesce(n.node.inputs -> '$.shapes', n.node.input_shapes)::VARCHAR AS input_shapes,
    coalesce(n.node.inputs -> '$.types', n.node.input_types)::VARCHAR AS input_types,
    coalesce(n.node.outputs -> '$.shapes', n.node.output_shapes)::VARCHAR AS output_shapes,
    coalesce(n.node.outputs -> '$.types', n.node.output_types)::VARCHAR AS output_types
FROM nodes AS n
ORDER BY node_id
