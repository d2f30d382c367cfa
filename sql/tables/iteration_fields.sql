-- Regular expressions that extract numbers from the names of serving iterations.
--
-- A built-in table, the same for every store: sql/tables/iteration_fields.csv. Fields named context_… describe prompts,
-- and fields named generation_… describe requests that decode. If a name states only one number of requests, the mode
-- shows whether they are prompts or decode. Per request, kv adds the context length, sqsq the square of the number of
-- new tokens, and sqsk the number of new tokens times the context length.
CREATE OR REPLACE VIEW iteration_fields AS
-- Columns:
--   format   VARCHAR  Name of the format, as in iteration_formats.
--   field    VARCHAR  mode, requests, padded_requests, or a name of the form context_… or generation_… that ends in requests, tokens, kv, sqsq or sqsk.
--   pattern  VARCHAR  Regular expression whose first group is the value.
SELECT x.*
FROM stored.iteration_fields AS x
