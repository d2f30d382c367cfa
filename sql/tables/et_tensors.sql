-- Tensors that nodes of execution traces consume and produce.
CREATE OR REPLACE VIEW et_tensors AS
-- Columns:
--   run              VARCHAR         Run: one capture of one job.
--   rank             INTEGER         Rank of the process that wrote the execution trace.
--   node_id          BIGINT          Node, in et_nodes.
--   is_output        BOOLEAN         Whether the node produces the tensor; otherwise the node consumes it.
--   tensor_position  BIGINT [1]      Position among the tensors of the inputs or outputs, from 0, including tensors in lists.
--   tensor_id        BIGINT          Number of the tensor in the execution trace.
--   storage_id       BIGINT          Number of the tensor's storage, which its views share; 0: none.
--   storage_offset   BIGINT [1]      Offset in the storage.
--   element_count    BIGINT [count]  Number of elements.
--   element_bytes    BIGINT [bytes]  Size of an element.
--   device           VARCHAR         Device, such as cuda:0.
SELECT x.* EXCLUDE (span)
FROM stored.et_tensors AS x
