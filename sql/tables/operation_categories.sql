-- What kind of work operations do, by the names of operators and of kernels.
--
-- A list of the library, the same for every store: sql/tables/operation_categories.csv. The pattern of the lowest
-- priority that fits decides. Kernels are asked where the operator does not tell: code of compilers, of other
-- libraries, or launched in none.
CREATE OR REPLACE VIEW operation_categories AS
-- Columns:
--   priority  INTEGER [1]  Lower ones decide first.
--   side      VARCHAR      operator: the pattern fits a name without overload as a whole; kernel: it is found anywhere, in any case.
--   category  VARCHAR      gemm, convolution, attention, norm, ….
--   pattern   VARCHAR      Regular expression.
SELECT
    x.priority,
    x.side,
    x.category,
    x.pattern
FROM stored.operation_categories AS x
