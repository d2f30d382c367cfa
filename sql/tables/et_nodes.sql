-- Nodes of PyTorch's execution traces (ExecutionTraceObserver): operators and annotations with their inputs and outputs.
--
-- lib.execution_trace_events joins the nodes to the events of the trace of the same rank. Each tensor is a row of
-- et_tensors.
CREATE OR REPLACE VIEW et_nodes AS
-- Columns:
--   run                    VARCHAR      Run: one capture of one job.
--   rank                   INTEGER      Rank of the process that wrote the execution trace.
--   node_id                BIGINT       Number of the node; ascending in the order in which nodes started.
--   parent_node_id         BIGINT       node_id of the node that called this node (control dependency).
--   name                   VARCHAR      Name of the operator or annotation.
--   record_function_id     BIGINT       Id of the call (rf_id); 0 for nodes that represent the process or a thread.
--   forward_node_id        BIGINT       node_id of the node's parent in the forward pass; 0: none.
--   sequence_number        BIGINT       Autograd sequence number; -1: none.
--   record_scope           BIGINT [1]   Scope of the call, numbered as in at::RecordScope: 0 function, 1 backward function, 7 user.
--   thread_number          BIGINT [1]   Thread, numbered from 1.
--   forward_thread_number  BIGINT [1]   Thread of the forward pass; 0: none.
--   op_schema              VARCHAR      Schema of the operator; NULL if it has none.
--   inputs                 VARCHAR      Inputs as JSON; a tensor is [tensor id, storage id, offset, elements, bytes per element, device].
--   input_shapes           VARCHAR      Shapes of the inputs as JSON.
--   input_types            VARCHAR      Types of the inputs as JSON.
--   outputs                VARCHAR      Outputs as JSON.
--   output_shapes          VARCHAR      Shapes of the outputs as JSON.
--   output_types           VARCHAR      Types of the outputs as JSON.
--   kernel_backend         VARCHAR      Compiler of the node's kernel, such as triton; NULL if the kernel is not compiled.
--   kernel_file            VARCHAR      File of the node's kernel.
SELECT x.* EXCLUDE (span)
FROM stored.et_nodes AS x
