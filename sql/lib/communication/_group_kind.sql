-- Kind of parallelism of a process group, derived from the description that frameworks give it.
--
-- The words of torch device meshes (mesh_dp, mesh_dp_shard_cp, mesh_tp), Megatron (DATA_PARALLEL_GROUP_WITH_CP,
-- TENSOR_MODEL_PARALLEL_GROUP), DeepSpeed and vLLM are searched in the order below, ignoring case. A group that
-- reduces gradients or gathers parameters is dp, even if it belongs to experts or spans other dimensions. A group
-- across several kinds of model parallelism is mp. torch's default_pg and undefined are unknown.
CREATE OR REPLACE MACRO lib._group_kind(
    -- Description of a process group.
    description
) AS
-- Returns: VARCHAR  dp, tp, pp, ep, cp or mp; NULL if the description does not show it.
CASE
    -- Groups across several kinds: TENSOR_AND_DATA_PARALLEL_GROUP, EXPERT_TENSOR_MODEL_PIPELINE_PARALLEL_GROUP,
    -- mesh_tp_cp.
    WHEN regexp_matches(lower(description), 'tensor_and_|expert_tensor_(and_)?model|tensor_model_pipeline|(^|[^a-z])tp_(cp|dp|ep|pp)([^a-z]|$)') THEN 'mp'
    -- DATA_PARALLEL_GROUP, EXPERT_DATA_PARALLEL_GROUP, mesh_dp_shard, mesh_replicate, fsdp.
    WHEN regexp_matches(lower(description), '(^|[^a-z])(data|dp|ddp|edp|fsdp|efsdp|hsdp|replicate|shard|zero)([^a-z]|$)') THEN 'dp'
    -- TENSOR_MODEL_PARALLEL_GROUP, EXPERT_TENSOR_PARALLEL_GROUP, mesh_tp.
    WHEN regexp_matches(lower(description), '(^|[^a-z])(tensor|tp|etp)([^a-z]|$)') THEN 'tp'
    -- PIPELINE_MODEL_PARALLEL_GROUP; EMBEDDING_GROUP connects the first and the last stage.
    WHEN regexp_matches(lower(description), '(^|[^a-z])(pipeline|pp|embedding)([^a-z]|$)') THEN 'pp'
    -- CONTEXT_PARALLEL_GROUP, HIERARCHICAL_CONTEXT_PARALLEL_GROUPS, sequence_parallel, ulysses.
    WHEN regexp_matches(lower(description), '(^|[^a-z])(context|cp|sequence|sp|ulysses|ring)([^a-z]|$)') THEN 'cp'
    -- EXPERT_MODEL_PARALLEL_GROUP, ep_size_4, mesh_ep.
    WHEN regexp_matches(lower(description), '(^|[^a-z])(expert|ep|moe)([^a-z]|$)') THEN 'ep'
    -- MODEL_PARALLEL_GROUP.
    WHEN regexp_matches(lower(description), '(^|[^a-z])(model|mp)([^a-z]|$)') THEN 'mp'
END
