-- Upper bound on the combined saving of all rules for a rank; time shared by several rules counts once.
--
-- Each rule concerns a part of step time (`advice_part`); together, the rules for one part save at most that part.
-- Rules about idle time cover different causes, and rules about kernels cover different kernels:
--
-- - small_kernels: kernels shorter than 10 us.
-- - unfused_attention: kernels of unfused attention.
-- - single_precision: matrix products in full single precision.
-- - misaligned_products: misaligned matrix products.
-- - slow_products: all other matrix products.
--
-- A rule whose time is contained in the time of another active rule adds nothing: garbage_collection, indexing_loops
-- and filled_copies are contained in host_work or launch_bound, conv_bias in elementwise_kernels or small_kernels.
--
-- late_rank counts only the lateness that no other rule explains. A rule on the rank's own work (idle time, computation
-- or copies) explains what it saves there beyond the median of the run's other ranks.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib._advice_combined(
    -- Name of a relation with the columns of lib._advice_data_loading: findings of the rules.
    found,
    -- Name of a relation with the columns of lib.step_sums.
    spans
) AS TABLE
-- Columns:
--   run          VARCHAR      Run name.
--   rank         INTEGER      Rank of the process.
--   combined_ns  BIGINT [ns]  Upper bound on the saving, at most the step time; NULL if no finding of the rank has a ceiling.
WITH
    _rules AS (
        SELECT
            f.run, f.rank, f.rule, lib.advice_part(f.rule) AS part, f.ceiling_ns,
            bool_or(f.rule IN ('host_work', 'launch_bound')) OVER of_rank AS has_host,
            bool_or(f.rule IN ('elementwise_kernels', 'small_kernels')) OVER of_rank AS has_elementwise
        FROM query_table(found) AS f
        WHERE f.ceiling_ns IS NOT NULL
        WINDOW of_rank AS (PARTITION BY f.run, f.rank)
    ),
    _parts AS (
        SELECT r.run, r.rank, r.part, sum(r.ceiling_ns) AS ns
        FROM _rules AS r
        WHERE
            NOT (r.has_host AND r.rule IN ('garbage_collection', 'indexing_loops', 'filled_copies'))
            AND NOT (r.has_elementwise AND r.rule = 'conv_bias')
        GROUP BY r.run, r.rank, r.part
    ),
    _bounded AS (
        SELECT
            p.run, p.rank, p.part, s.recorded_ns,
            CASE p.part
                WHEN 'idle' THEN least(p.ns, s.idle_ns)
                WHEN 'compute' THEN least(p.ns, s.compute_ns)
                WHEN 'communication' THEN least(p.ns, s.transfer_ns + s.unmatched_ns + s.wait_ns)
                WHEN 'memory' THEN least(p.ns, s.memory_ns)
                ELSE p.ns
            END AS ns
        FROM _parts AS p
        JOIN query_table(spans) AS s ON s.run = p.run AND s.rank = p.rank
    ),
    _own AS (
        SELECT s.run, s.rank, coalesce(sum(b.ns), 0) AS ns
        FROM query_table(spans) AS s
        LEFT JOIN _bounded AS b ON b.run = s.run AND b.rank = s.rank AND b.part IN ('idle', 'compute', 'memory')
        GROUP BY s.run, s.rank
    ),
    -- Without other ranks in scope, all of the rank's own savings explain its lateness.
    _explained AS (
        SELECT b.run, b.rank, any_value(o.ns) - coalesce(median(w.ns), 0) AS ns
        FROM _bounded AS b
        JOIN _own AS o ON o.run = b.run AND o.rank = b.rank
        LEFT JOIN _own AS w ON w.run = b.run AND w.rank != b.rank
        WHERE b.part = 'lateness'
        GROUP BY b.run, b.rank
    )
SELECT
    b.run, b.rank,
    least(
        sum(CASE b.part WHEN 'lateness' THEN greatest(b.ns - greatest(e.ns, 0), 0) ELSE b.ns END),
        any_value(b.recorded_ns)
    )::BIGINT AS combined_ns
FROM _bounded AS b
LEFT JOIN _explained AS e ON e.run = b.run AND e.rank = b.rank
GROUP BY b.run, b.rank
