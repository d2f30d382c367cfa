-- Kind of work by operator or kernel name, as in operation_categories, evaluated once per distinct name.
CREATE OR REPLACE MACRO lib.named_categories(
    -- Name of a relation with side (operator or kernel) and name.
    named_ops
) AS TABLE
-- Columns:
--   side      VARCHAR  operator or kernel.
--   name      VARCHAR  Distinct names.
--   category  VARCHAR  Kind of work: gemm, convolution, attention, …; names without a matching rule have no row.
WITH
    _names AS (
        SELECT DISTINCT n.side, n.name FROM query_table(named_ops) AS n WHERE n.name IS NOT NULL
    )
SELECT k.side AS side, k.name AS name, k.category AS category
FROM (
    SELECT
        n.side, n.name,
        -- Uses the matching rule of operation_categories with the lowest priority value.
        CASE n.side
            WHEN 'operator' THEN stored.operator_category(n.name)
            WHEN 'kernel' THEN stored.kernel_category(n.name)
        END AS category
    FROM _names AS n
) AS k
WHERE k.category IS NOT NULL
