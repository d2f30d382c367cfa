-- Numbers in the names of iterations: one regular expression for each.
--
-- A list of the library, the same for every store: sql/tables/iteration_fields.csv. context is the prompts, generation the
-- requests that decode; requests are those of the group that the mode names. kv is the sum of the context
-- lengths of the requests, sqsq and sqsk the sums of new tokens squared, and of new tokens times context length.
CREATE OR REPLACE VIEW iteration_fields AS
-- Columns:
--   format   VARCHAR  Format, as in iteration_formats.
--   field    VARCHAR  mode, requests, padded_requests, or context_ or generation_ with requests, tokens, kv, sqsq, sqsk.
--   pattern  VARCHAR  Regular expression whose first group is the value.
SELECT
    x.format,
    x.field,
    x.pattern
FROM stored.iteration_fields AS x
