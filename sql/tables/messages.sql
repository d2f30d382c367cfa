-- Templates of the sentences that analyses return, by message code.
--
-- A built-in table, the same for every store: the CSV files in sql/messages, one per topic. An analysis returns the
-- code, and lib.message_text fills numbers and names into the template. Sentences can be corrected without a new
-- version of an analysis, because the wording is not part of the definition of the analysis.
CREATE OR REPLACE VIEW messages AS
-- Columns:
--   code     VARCHAR  Message code: analysis and finding, such as advice.conv_bias.
--   title    VARCHAR  Short heading; NULL if there is none.
--   message  VARCHAR  Template of the sentence with placeholders such as {gap_count:count}; see lib.message_text.
--   limits   VARCHAR  Consequence for the analyses; NULL if there is none.
--   remedy   VARCHAR  Recommended action; NULL if the message contains it, or if there is none.
SELECT
    x.code,
    x.title,
    x.message,
    x.limits,
    x.remedy
FROM stored.messages AS x
