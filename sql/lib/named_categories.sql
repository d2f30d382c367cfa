-- What kind of work operations do, by the names of operators and of kernels, each looked at once: operation_categories.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib.named_categories(
    -- Name of a relation with side, name: side is operator or kernel.
    named_ops
) AS TABLE
-- Columns:
--   side      VARCHAR  operator or kernel.
--   name      VARCHAR  Name, each once.
--   category  VARCHAR  gemm, convolution, attention, …; names that no rule knows are left out.
WITH
    _names AS (
        SELECT DISTINCT n.side, n.name FROM query_table(named_ops) AS n WHERE n.name IS NOT NULL
    )
SELECT n.side AS side, n.name AS name, arg_min(r.category, r.priority) AS category
FROM _names AS n
JOIN operation_categories AS r
    ON r.side = n.side
    AND CASE r.side WHEN 'operator' THEN regexp_full_match(n.name, r.pattern) ELSE regexp_matches(n.name, r.pattern, 'i') END
GROUP BY n.side, n.name
