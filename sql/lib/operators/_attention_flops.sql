-- Floating-point operations of an attention: scores and weighted values; of the softmax none are counted.
--
-- The backward pass of a fused attention has five products where the forward pass has two: scores are computed again.
-- A causal attention has those pairs of queries and keys only that it looks at: about half.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib._attention_flops(
    -- Sequences.
    batch,
    -- Heads of the queries.
    heads,
    -- Pairs of a query and a key that are looked at: lib._attended_pairs, queries times keys without a mask.
    pairs,
    -- Size of a head, of queries and keys.
    head_dim,
    -- Size of a head, of values.
    value_dim,
    -- Whether it is the backward pass.
    is_backward := false
) AS
-- Returns: BIGINT [1]  Two for each multiplication with its addition.
TRY_CAST(
    2 * batch::DOUBLE * heads::DOUBLE * pairs::DOUBLE
    * CASE WHEN is_backward THEN 3 * head_dim::DOUBLE + 2 * value_dim::DOUBLE ELSE head_dim::DOUBLE + value_dim::DOUBLE END
    AS BIGINT
)
