-- Rules that assign operators and kernels to categories of work by name.
--
-- A built-in table, the same for every store: sql/tables/operation_categories.csv. If several patterns match, the one
-- with the lowest priority applies. Kernel names are used if the operator does not show the category, as for code
-- from compilers or other libraries, or for launches outside operators.
CREATE OR REPLACE VIEW operation_categories AS
-- Columns:
--   priority  INTEGER [1]  Priority of the rule; if several rules match, the lowest applies.
--   side      VARCHAR      operator: the pattern matches the whole name without overload; kernel: it may match anywhere, ignoring case.
--   category  VARCHAR      Kind of work: gemm, convolution, attention, norm, ….
--   pattern   VARCHAR      Regular expression that the name matches.
SELECT
    x.priority,
    x.side,
    x.category,
    x.pattern
FROM stored.operation_categories AS x
