-- Patterns of kernel names that show whether a kernel runs on tensor cores (AMD: matrix cores).
--
-- A built-in table, the same for every store: sql/tables/tensor_core_kernels.csv. If several patterns match, the one
-- with the lowest priority applies; for a name that matches no pattern, tensor core use is unknown.
CREATE OR REPLACE VIEW tensor_core_kernels AS
-- Columns:
--   priority           INTEGER [1]  Priority of the rule; if several rules match, the lowest applies, then the first pattern in alphabetical order.
--   pattern            VARCHAR      GLOB pattern for the whole name in lower case: * matches any string, ? any character.
--   uses_tensor_cores  BOOLEAN      Whether such kernels run on tensor cores; NULL if the name does not show it.
--   vendor             VARCHAR      Vendor of the kernels; NULL: several.
--   reason             VARCHAR      Explanation of the pattern.
SELECT x.*
FROM stored.tensor_core_kernels AS x
