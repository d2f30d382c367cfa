-- Operations whose count characterizes a job, by name, with the kind of operation.
--
-- The patterns match only the outermost or only the innermost event of an operation, so no operation counts twice.
CREATE OR REPLACE MACRO lib._special_operator_kinds(
    -- Name of a relation with name.
    named_ops
) AS TABLE
-- Columns:
--   name        VARCHAR  Distinct names; names that match no kind have no row.
--   kind        VARCHAR  Kind of operation.
--   about_code  VARCHAR  Code of the message in the table messages that explains the count.
SELECT n.name AS name, v.kind AS kind, v.about_code AS about_code
FROM (SELECT DISTINCT o.name FROM query_table(named_ops) AS o) AS n
JOIN (
    -- Kind, regular expression of the names, message that explains the count.
    VALUES
        ('optimizer step', 'Optimizer\.step#.*', 'special_operators.optimizer_step'),
        ('gradients zeroed', 'Optimizer\.zero_grad#.*', 'special_operators.gradients_zeroed'),
        ('gradient norm', 'aten::_foreach_norm|.*: clip_grad_norm_', 'special_operators.gradient_norm'),
        ('all-reduce', 'c10d::allreduce_.*', 'special_operators.all_reduce'),
        ('all-gather', 'c10d::_?allgather_.*', 'special_operators.all_gather'),
        ('reduce-scatter', 'c10d::_?reduce_scatter_.*', 'special_operators.reduce_scatter'),
        ('all-to-all', 'c10d::alltoall_.*', 'special_operators.all_to_all'),
        ('broadcast', 'c10d::broadcast_.*', 'special_operators.broadcast'),
        ('send', 'c10d::send', 'special_operators.send'),
        ('receive', 'c10d::recv_.*', 'special_operators.receive'),
        ('barrier', 'c10d::(monitored_)?barrier', 'special_operators.barrier'),
        ('value read by the host', 'aten::_local_scalar_dense', 'special_operators.value_read_by_the_host'),
        ('size known late', 'aten::(nonzero|masked_select|_unique2|unique_consecutive|unique_dim)', 'special_operators.size_known_late'),
        ('host synchronizes', '(cuda|hip)(Device|Stream|Event)Synchronize|aclrtSynchronize\w+', 'special_operators.host_synchronizes'),
        ('device memory allocated', '(cuda|hip)(Malloc|MallocAsync|MallocFromPoolAsync)|cuMem(Create|Alloc\w*)', 'special_operators.device_memory_allocated'),
        ('device memory freed', '(cuda|hip)(Free|FreeAsync)|cuMem(Release|Free\w*)', 'special_operators.device_memory_freed'),
        ('pinned memory allocated', '(cuda|hip)(HostAlloc|MallocHost|HostMalloc)', 'special_operators.pinned_memory_allocated'),
        ('not-a-number check', 'aten::(isnan|isinf|isfinite|_amp_foreach_non_finite_check_and_unscale_)', 'special_operators.not_a_number_check'),
        ('recomputation', 'CheckpointFunctionBackward|.*torch/utils/checkpoint\.py\(\d+\): (recompute_fn|unpack_hook)', 'special_operators.recomputation'),
        ('data loaded', 'enumerate\(Data(Loader|Pipe)\)#.*', 'special_operators.data_loaded'),
        ('copy from pageable memory', 'Memcpy (HtoD|DtoH) .*Pageable.*', 'special_operators.copy_from_pageable_memory'),
        ('module loaded', '(cu|cuda|hip)(Module|Library)Load\w*', 'special_operators.module_loaded'),
        ('garbage collection', '<built-in function collect>', 'special_operators.garbage_collection')
) AS v(kind, pattern, about_code) ON regexp_full_match(n.name, v.pattern)
