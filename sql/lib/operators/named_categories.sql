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
SELECT k.side AS side, k.name AS name, k.category AS category
FROM (
    SELECT
        n.side, n.name,
        -- The rules of operation_categories, the one of the lowest priority.
        CASE n.side
            WHEN 'operator' THEN stored.operator_category(n.name)
            WHEN 'kernel' THEN stored.kernel_category(n.name)
        END AS category
    FROM _names AS n
) AS k
WHERE k.category IS NOT NULL
