-- Floating-point operations of attention: scores and weighted values, without the softmax.
--
-- The backward pass of fused attention has five products instead of two, because it recomputes the scores. For causal
-- attention, only the computed query-key pairs count: about half.
CREATE OR REPLACE MACRO lib._attention_flops(
    -- Number of sequences.
    batch,
    -- Number of query heads.
    heads,
    -- Number of query-key pairs: lib._attended_pairs, or queries times keys without a mask.
    pairs,
    -- Head dimension of queries and keys.
    head_dim,
    -- Head dimension of values.
    value_dim,
    -- Whether to count the backward pass.
    is_backward := false
) AS
-- Returns: BIGINT [1]  Operations, two per multiply-add.
TRY_CAST(
    2 * batch::DOUBLE * heads::DOUBLE * pairs::DOUBLE
    * CASE WHEN is_backward THEN 3 * head_dim::DOUBLE + 2 * value_dim::DOUBLE ELSE head_dim::DOUBLE + value_dim::DOUBLE END
    AS BIGINT
)
