-- Regular expressions that extract numbers from the names of serving iterations.
--
-- A built-in table, the same for every store: sql/tables/iteration_fields.csv. context refers to prompts, generation
-- to requests that decode; requests refers to the group of requests named by the mode. kv is the sum of the requests'
-- context lengths. sqsq is the sum of squared new tokens; sqsk is the sum of new tokens times context length.
CREATE OR REPLACE VIEW iteration_fields AS
-- Columns:
--   format   VARCHAR  Name of the format, as in iteration_formats.
--   field    VARCHAR  mode, requests, padded_requests, or context_ or generation_ followed by requests, tokens, kv, sqsq or sqsk.
--   pattern  VARCHAR  Regular expression whose first group is the value.
SELECT
    x.format,
    x.field,
    x.pattern
FROM stored.iteration_fields AS x
