-- Whether kernels run on tensor cores, derived from their names with the table tensor_core_kernels, once per distinct
-- name.
CREATE OR REPLACE MACRO lib.tensor_core_names(
    -- Name of a relation with name.
    named_ops
) AS TABLE
-- Columns:
--   name               VARCHAR  Distinct names.
--   uses_tensor_cores  BOOLEAN  Whether the kernel runs on tensor cores; NULL if no pattern of the table matches.
SELECT n.name AS name, arg_min_null(k.uses_tensor_cores, (k.priority, k.pattern)) AS uses_tensor_cores
FROM (SELECT DISTINCT d.name FROM query_table(named_ops) AS d) AS n
LEFT JOIN tensor_core_kernels AS k ON lower(n.name) GLOB k.pattern
GROUP BY n.name
