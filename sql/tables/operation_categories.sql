-- Rules that assign operators and kernels to categories of work by name.
--
-- A built-in table, the same for every store: sql/tables/operation_categories.csv. If several patterns match, the one
-- with the lowest priority applies. The kernel name is used if the operator does not reveal the category, as with
-- compiled code or other libraries, and for launches outside operators.
CREATE OR REPLACE VIEW operation_categories AS
-- Columns:
--   priority  INTEGER [1]  Priority of the rule; if several rules match, the lowest applies.
--   side      VARCHAR      Name to match: operator (the whole name without overload) or kernel (any part of the name, ignoring case).
--   category  VARCHAR      Kind of work: gemm, convolution, attention, norm, ….
--   pattern   VARCHAR      Regular expression that the name matches.
SELECT x.*
FROM stored.operation_categories AS x
