-- Operators of serving engines that attend to a cache of keys and values, and those that write it.
--
-- A built-in table, the same for every store: sql/tables/attention_operators.csv. Inputs have the shape tokens × heads ×
-- head size, tokens × width, or pages × page size × heads × head size.
CREATE OR REPLACE VIEW attention_operators AS
-- Columns:
--   operator     VARCHAR      Name of the operator without overload.
--   role         VARCHAR      attention, or cache: it writes keys and values into the cache.
--   query_input  INTEGER [1]  Position of the queries in its inputs, from 0; NULL for a cache.
--   key_input    INTEGER [1]  Position of the keys, or of the cache of keys.
--   value_input  INTEGER [1]  Position of the values, or of the cache of values.
--   source       VARCHAR      Where the engine defines it.
SELECT
    x.operator,
    x.role,
    x.query_input,
    x.key_input,
    x.value_input,
    x.source
FROM stored.attention_operators AS x
