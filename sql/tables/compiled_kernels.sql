-- Kernels that torch.compile or AOTInductor generated, as described by Inductor's files next to the trace.
--
-- The rows come from kernel_information.json (AOTInductor with INDUCTOR_PROVENANCE=1), from
-- inductor_provenance_tracking_node_mappings.json and …_kernel_stack_traces.json (torch.compile with
-- TORCH_COMPILE_DEBUG=1, or tlparse), and from torch._inductor.debug.get_kernel_information_jsons() written as JSON.
-- A kernel that the generated code calls twice has two rows. Without such files, there are no rows.
CREATE OR REPLACE VIEW compiled_kernels AS
-- Columns:
--   run                VARCHAR     Run: one capture of one job.
--   rank               INTEGER     Rank of the process whose trace the file is next to.
--   kernel_id          BIGINT      Row number within the rank, from 0.
--   source             VARCHAR     File that describes the kernel.
--   graph              VARCHAR     Compiled region, such as Torch-Compiled Region: 0/0; NULL if the file does not distinguish regions.
--   is_backward_graph  BOOLEAN     Whether the kernel belongs to the backward graph of the region; NULL if the file does not distinguish regions.
--   name               VARCHAR     Name of the kernel or of the library call, such as triton_poi_fused_mul_0 or extern_kernels.addmm.
--   debug_handle       BIGINT [1]  Number of the call in the generated code.
--   post_grad_nodes    VARCHAR     Nodes of the compiled graph that the kernel computes, as a JSON list.
--   pre_grad_nodes     VARCHAR     Nodes of the captured graph from which post_grad_nodes stem, as a JSON list.
--   source_stacks      VARCHAR     Stacks of the model code from which post_grad_nodes stem, as a JSON list of strings.
--   semantic_key       VARCHAR     Key of a library call, independent of the hardware (extern_semantic_key).
SELECT x.* EXCLUDE (span)
FROM stored.compiled_kernels AS x
