-- Device operations that the rules of advice_rules concern, by rule.
--
-- Kinds of operations:
--
-- - copies: copies and memsets.
-- - collectives: communication kernels.
-- - kernels: computation kernels, except those of unfused attention.
-- - kernels of a device with TF32, kernels of a device with tensor cores: the same, by the compute capability of the
--   device: 8 or above, or 7.
-- - short kernels, long kernels: the same, shorter than short_ns of advice_rules, or not shorter and outside of
--   optimizers.
-- - unfused attention: softmax kernels and batched matrix products of a rank with at least two such products, if
--   softmax takes at least 3 % of step time.
-- - zeroed gradients: operations in Optimizer.zero_grad.
CREATE OR REPLACE MACRO lib._advice_device(
    -- Name of a relation with the columns of lib.step_sums.
    spans,
    -- Name of a relation with the columns of lib._advice_kernels.
    kernels
) AS TABLE
-- Columns:
--   run            VARCHAR         Run name.
--   rank           INTEGER         Rank of the process.
--   rule           VARCHAR         Name of the rule.
--   kind           VARCHAR         Kind of operations.
--   subject        VARCHAR         Operator that launched the operations with the longest total duration, otherwise their name; of copies and collectives, the name.
--   event_count    BIGINT [count]  Number of operations.
--   affected_ns    BIGINT [ns]     Total duration.
--   saved_ns       BIGINT [ns]     The same, at most the part of step time that such operations take.
--   exposed_pct    DOUBLE [%]      Copies and memsets that nothing overlaps, as a share of recorded step time.
--   kernel_count   BIGINT [count]  Number of all computation kernels of the rank, except those of unfused attention.
--   product_count  BIGINT [count]  Number of batched matrix products.
--   event_id       BIGINT          event_id of a long operation in the group with the longest total.
--   evidence_sql   VARCHAR         Query that returns the operations with the longest total duration.
WITH
    _attention AS (
        SELECT k.run, k.rank
        FROM query_table(kernels) AS k
        JOIN query_table(spans) AS s ON s.run = k.run AND s.rank = k.rank
        WHERE k.attention_part IS NOT NULL
        GROUP BY k.run, k.rank, s.recorded_ns
        HAVING
            coalesce(sum(k.total_ns) FILTER (k.attention_part = 'softmax'), 0) >= 0.03 * s.recorded_ns
            AND sum(k.event_count) FILTER (k.attention_part = 'product') >= 2
    ),
    _claimed AS (
        SELECT k.*, k.attention_part IS NOT NULL AND a.run IS NOT NULL AS is_attention
        FROM query_table(kernels) AS k
        LEFT JOIN _attention AS a ON a.run = k.run AND a.rank = k.rank
    ),
    -- Each kernel is claimed by one rule only.
    _unclaimed AS (
        SELECT k.* FROM _claimed AS k WHERE k.class = 'computation' AND NOT k.is_attention
    ),
    _counts AS (
        SELECT k.run, k.rank, sum(k.event_count)::BIGINT AS kernel_count FROM _unclaimed AS k GROUP BY k.run, k.rank
    ),
    _devices AS (
        SELECT d.run, d.rank, CASE WHEN min(d.compute_major) >= 8 THEN 'TF32' ELSE 'tensor cores' END AS unit
        FROM devices AS d
        GROUP BY d.run, d.rank
        HAVING min(d.compute_major) >= 7
    ),
    _kinds AS (
        SELECT 'copies' AS kind, k.* FROM _claimed AS k WHERE k.class = 'memory'
        UNION ALL
        SELECT 'collectives', k.* FROM _claimed AS k WHERE k.class = 'communication'
        UNION ALL
        SELECT 'unfused attention', k.* FROM _claimed AS k WHERE k.is_attention
        UNION ALL
        SELECT 'zeroed gradients', k.* FROM _claimed AS k WHERE k.annotation LIKE 'Optimizer.zero_grad%'
        UNION ALL
        SELECT 'kernels', k.* FROM _unclaimed AS k
        UNION ALL
        SELECT 'kernels of a device with ' || d.unit, k.* FROM _unclaimed AS k JOIN _devices AS d ON d.run = k.run AND d.rank = k.rank
        UNION ALL
        SELECT 'short kernels', k.* REPLACE (k.small_count AS event_count, k.small_ns AS total_ns)
        FROM _unclaimed AS k
        WHERE k.small_count > 0
        UNION ALL
        SELECT 'long kernels', k.* REPLACE (k.event_count - k.small_count AS event_count, k.total_ns - k.small_ns AS total_ns)
        FROM _unclaimed AS k
        WHERE k.event_count > k.small_count AND NOT coalesce(starts_with(k.annotation, 'Optimizer.'), false)
    ),
    _lined AS (
        SELECT k.*, replace(k.name, chr(10), ' ') AS line FROM _kinds AS k
    ),
    _lines AS (
        SELECT k.kind, string_agg(DISTINCT k.line, chr(10)) AS lines FROM _lined AS k GROUP BY k.kind
    ),
    _covered AS (
        SELECT r.rule, r.kind, r.except_pattern, unnest(lib.matching_lines(l.lines, r.pattern)) AS line
        FROM _lines AS l
        JOIN advice_rules AS r ON r.kind = l.kind
    ),
    _chosen AS (
        SELECT c.rule, k.*
        FROM _lined AS k
        JOIN _covered AS c ON c.kind = k.kind AND c.line = k.line
        WHERE c.except_pattern IS NULL OR NOT regexp_matches(c.line, c.except_pattern)
    ),
    _summed AS (
        SELECT
            c.run, c.rank, c.rule, c.kind,
            arg_max(coalesce(c.op_name, c.name), (c.total_ns, c.name)) AS subject,
            arg_max(c.name, (c.total_ns, c.name)) AS kernel,
            sum(c.event_count)::BIGINT AS event_count,
            coalesce(sum(c.event_count) FILTER (c.attention_part = 'product'), 0)::BIGINT AS product_count,
            sum(c.total_ns)::BIGINT AS affected_ns,
            arg_max(c.event_id, (c.total_ns, c.name, -c.event_id)) AS event_id
        FROM _chosen AS c
        GROUP BY c.run, c.rank, c.rule, c.kind
    )
SELECT
    u.run, u.rank, u.rule, u.kind, CASE WHEN u.kind IN ('copies', 'collectives') THEN u.kernel ELSE u.subject END AS subject,
    u.event_count, u.affected_ns,
    least(u.affected_ns, CASE u.kind
        WHEN 'copies' THEN s.memory_ns
        WHEN 'collectives' THEN s.transfer_ns + s.unmatched_ns
        WHEN 'zeroed gradients' THEN s.compute_ns + s.memory_ns
        ELSE s.compute_ns
    END) AS saved_ns,
    100 * (s.memory_ns / nullif(s.recorded_ns, 0)) AS exposed_pct,
    n.kernel_count, u.product_count, u.event_id,
    format('FROM gpu_ops WHERE run = {} AND rank = {} AND name = {} ORDER BY dur DESC', lib.sql_literal(u.run), u.rank, lib.sql_literal(u.kernel)) AS evidence_sql
FROM _summed AS u
JOIN query_table(spans) AS s ON s.run = u.run AND s.rank = u.rank
LEFT JOIN _counts AS n ON n.run = u.run AND n.rank = u.rank
