-- Add fields that all messages of an analysis share to the fields of a message.
CREATE OR REPLACE MACRO lib.with_fields(
    -- Fields of lib.message.
    fields,
    -- Additional values, a STRUCT.
    more
) AS
-- Returns: JSON  Both sets of fields in one object.
json_merge_patch(fields, to_json(more))
