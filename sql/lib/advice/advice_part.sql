-- Part of step time that a rule concerns; together, rules for the same part save at most that part.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib.advice_part(
    -- Name of the rule.
    rule_name
) AS
-- Returns: VARCHAR  idle, compute, communication, memory, lateness (work beyond that of the other ranks) or mixed (several parts).
CASE
    WHEN rule_name IN ('data_loading', 'synchronization', 'launch_bound', 'host_work', 'driver_memory', 'module_loading', 'garbage_collection', 'indexing_loops', 'queued_gaps', 'unlinked_gaps', 'eager_decode', 'scheduling_gap') THEN 'idle'
    WHEN rule_name IN ('unfused_attention', 'misaligned_products', 'single_precision', 'small_kernels', 'elementwise_kernels', 'memory_traffic', 'slow_products', 'conv_bias', 'graph_padding') THEN 'compute'
    WHEN rule_name IN ('exposed_transfer', 'collective_waits', 'serving_all_reduce', 'expert_wait', 'expert_exposed') THEN 'communication'
    WHEN rule_name IN ('pageable_copies', 'exposed_copies') THEN 'memory'
    WHEN rule_name = 'late_rank' THEN 'lateness'
    ELSE 'mixed'
END
