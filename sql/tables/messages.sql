-- The sentences that analyses return: a template for each message code.
--
-- A list of the library, the same for every store: the CSV files of sql/messages, one a topic. An analysis returns
-- the code, and lib.message_text fills its numbers and names into the template. A sentence can be corrected without
-- a new version of an analysis: the words are no part of the definition of one.
CREATE OR REPLACE VIEW messages AS
-- Columns:
--   code     VARCHAR  Code of the message: analysis and what was found, such as advice.conv_bias.
--   title    VARCHAR  Heading of a few words; NULL if there is none.
--   message  VARCHAR  Template of the sentence, with placeholders such as {gap_count:count}: lib.message_text.
--   limits   VARCHAR  What it means for analyses; NULL if it limits none.
--   remedy   VARCHAR  What to do; NULL if the message says it, or if there is nothing to do.
SELECT
    x.code,
    x.title,
    x.message,
    x.limits,
    x.remedy
FROM stored.messages AS x
