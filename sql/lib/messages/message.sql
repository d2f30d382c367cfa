-- A message of an analysis: its code in the table messages, with the numbers and names of its sentence.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib.message(
    -- Code of the message, as a literal.
    message_code,
    -- Numbers and names of the sentence: a STRUCT with a field for each placeholder of the template, or NULL.
    fields
) AS
-- Returns: STRUCT  code VARCHAR and fields JSON, for lib.message_text.
{'code': message_code, 'fields': to_json(fields)}
