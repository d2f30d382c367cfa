-- Message of an analysis: its code in the table messages, with the values for its placeholders.
CREATE OR REPLACE MACRO lib.message(
    -- Code of the message: a literal, or a column of a built-in table whose name ends with code.
    message_code,
    -- Values for the placeholders: a STRUCT with one field per placeholder of the template, or NULL.
    fields
) AS
-- Returns: STRUCT  code VARCHAR and fields JSON, for lib.message_text.
{'code': message_code, 'fields': to_json(fields)}
