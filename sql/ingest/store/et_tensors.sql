-- One row per tensor that a node of an execution trace consumes or produces.
SELECT
    j.run,
    j.rank,
    x.node_id,
    x.is_output,
    x.tensor_position,
    x.tensor_id,
    x.storage_id,
    x.storage_offset,
    x.element_count,
    x.element_bytes,
    x.device
FROM staged_et_tensors AS x
CROSS JOIN job AS j
ORDER BY x.node_id, x.is_output, x.tensor_position
