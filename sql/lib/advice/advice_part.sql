-- Part of step time that a rule concerns; together, rules for the same part save at most that part.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib.advice_part(
    -- Name of the rule.
    rule_name
) AS
-- Returns: VARCHAR  idle, compute, communication, memory, lateness (work beyond that of the other ranks), mixed (several parts); NULL for an unknown rule.
CASE
    WHEN rule_name IN ('data_loading', 'synchronization', 'launch_bound', 'host_work', 'driver_memory', 'module_loading', 'garbage_collection', 'indexing_loops', 'queued_gaps', 'unlinked_gaps', 'eager_decode', 'scheduling_gap', 'dynamic_shapes', 'memory_near_limit') THEN 'idle'
    WHEN rule_name IN ('unfused_attention', 'misaligned_products', 'single_precision', 'quantized_products', 'small_kernels', 'elementwise_kernels', 'memory_traffic', 'slow_products', 'memory_bound_products', 'slow_attention', 'conv_bias', 'graph_padding') THEN 'compute'
    WHEN rule_name IN ('exposed_transfer', 'collective_waits', 'serving_all_reduce', 'expert_wait', 'expert_exposed', 'sync_batch_norm', 'slow_link', 'gloo_for_gpus') THEN 'communication'
    WHEN rule_name IN ('pageable_copies', 'exposed_copies') THEN 'memory'
    WHEN rule_name IN ('late_rank', 'slow_stage') THEN 'lateness'
    -- zeroed_gradients: computation and memsets; unfused_optimizer: computation and idle time between its kernels;
    -- filled_copies: idle time and copies; mixed_iterations: whole iterations; data_parallel: copies, collectives and
    -- idle time; largest_loss: any part.
    WHEN rule_name IN ('zeroed_gradients', 'unfused_optimizer', 'filled_copies', 'mixed_iterations', 'data_parallel', 'largest_loss') THEN 'mixed'
END
