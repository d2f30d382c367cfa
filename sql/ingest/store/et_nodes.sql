-- One row per node of an execution trace.
SELECT
    j.run,
    j.rank,
    x.id AS node_id,
    x.parent AS parent_node_id,
    x.name,
    x.rf_id AS record_function_id,
    x.fw_parent AS forward_node_id,
    x.seq_id AS sequence_number,
    x.scope AS record_scope,
    x.tid AS thread_number,
    x.fw_tid AS forward_thread_number,
    x.op_schema,
    x.inputs,
    x.input_shapes,
    x.input_types,
    x.outputs,
    x.output_shapes,
    x.output_types,
    x.kernel_backend,
    x.kernel_file
FROM staged_et_nodes AS x
CROSS JOIN job AS j
ORDER BY x.id
