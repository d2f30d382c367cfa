-- Operations whose number says something about a job: what kind they are, and by which names.
--
-- Names are those of the outermost or innermost event that stands for one operation, so that none counts twice.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib.special_operator_kinds(
    -- Name of a relation with name.
    named_ops
) AS TABLE
-- Columns:
--   name   VARCHAR  Name, each once; names of no kind are left out.
--   kind   VARCHAR  What people call it.
--   about  VARCHAR  What their number says.
SELECT n.name AS name, v.kind AS kind, v.about AS about
FROM (SELECT DISTINCT o.name FROM query_table(named_ops) AS o) AS n
JOIN (
    -- Kind, names as a regular expression, what their number says.
    VALUES
        ('optimizer step', 'Optimizer\.step#.*', 'weights are updated: once a step, or once every few with accumulation'),
        ('gradients zeroed', 'Optimizer\.zero_grad#.*', 'once for each optimizer step'),
        ('gradient norm', 'aten::_foreach_norm|.*: clip_grad_norm_', 'gradients are clipped; their norm is a collective where they are sharded'),
        ('all-reduce', 'c10d::allreduce_.*', 'collective calls of the host'),
        ('all-gather', 'c10d::_?allgather_.*', 'collective calls of the host; sharded weights are gathered'),
        ('reduce-scatter', 'c10d::_?reduce_scatter_.*', 'collective calls of the host; sharded gradients are reduced'),
        ('all-to-all', 'c10d::alltoall_.*', 'collective calls of the host; tokens or embeddings are exchanged'),
        ('broadcast', 'c10d::broadcast_.*', 'collective calls of the host; buffers are made equal'),
        ('send', 'c10d::send', 'messages to a neighbour, as between stages of a pipeline'),
        ('receive', 'c10d::recv_.*', 'messages from a neighbour'),
        ('barrier', 'c10d::(monitored_)?barrier', 'all ranks wait for each other'),
        ('value read by the host', 'aten::_local_scalar_dense', 'each .item(), float() or if on a tensor makes the host wait for the device'),
        ('size known late', 'aten::(nonzero|masked_select|_unique2|unique_consecutive|unique_dim)', 'the size of the result makes the host wait for the device'),
        ('host synchronises', '(cuda|hip)(Device|Stream|Event)Synchronize|aclrtSynchronize\w+', 'the host waits for the device'),
        ('device memory allocated', '(cuda|hip)(Malloc|MallocAsync|MallocFromPoolAsync)|cuMem(Create|Alloc\w*)', 'the allocator asks the driver: rare once it is warm'),
        ('device memory freed', '(cuda|hip)(Free|FreeAsync)|cuMem(Release|Free\w*)', 'the allocator gives memory back, and waits for the device'),
        ('pinned memory allocated', '(cuda|hip)(HostAlloc|MallocHost|HostMalloc)', 'slow, and waits for the device'),
        ('not-a-number check', 'aten::(isnan|isinf|isfinite|_amp_foreach_non_finite_check_and_unscale_)', 'values or gradients are checked; the scaler of mixed precision does so once a step'),
        ('recomputation', 'CheckpointFunctionBackward|.*torch/utils/checkpoint\.py\(\d+\): (recompute_fn|unpack_hook)', 'activations are computed again in the backward pass'),
        ('data loaded', 'enumerate\(Data(Loader|Pipe)\)#.*', 'batches are waited for'),
        ('copy from pageable memory', 'Memcpy (HtoD|DtoH) .*Pageable.*', 'the host waits until it is through; pinned memory would not'),
        ('module loaded', '(cu|cuda|hip)(Module|Library)Load\w*', 'code is brought to the device: at the start only'),
        ('garbage collection', '<built-in function collect>', 'Python stops; ranks that do so at different times wait for each other')
) AS v(kind, pattern, about) ON regexp_full_match(n.name, v.pattern)
