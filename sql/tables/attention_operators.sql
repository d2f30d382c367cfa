-- Operators of serving engines that attend to a KV cache, and operators that write to it.
--
-- A built-in table, the same for every store: sql/tables/attention_operators.csv. Queries, keys and values have the
-- shape tokens × heads × head size, or tokens × width. A KV cache has the shape pages × page size × heads × head size.
CREATE OR REPLACE VIEW attention_operators AS
-- Columns:
--   operator     VARCHAR      Name of the operator without overload.
--   role         VARCHAR      attention, or cache if the operator writes keys and values into the KV cache.
--   query_input  INTEGER [1]  Position of the queries among the inputs, from 0; NULL if the role is cache.
--   key_input    INTEGER [1]  Position of the keys, or of the key cache.
--   value_input  INTEGER [1]  Position of the values, or of the value cache.
--   source       VARCHAR      Source code in which the engine defines the operator.
SELECT x.*
FROM stored.attention_operators AS x
