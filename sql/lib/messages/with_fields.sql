-- The fields of a message with further ones, which all messages of an analysis have.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib.with_fields(
    -- Fields of lib.message.
    fields,
    -- Further numbers and names, a STRUCT.
    more
) AS
-- Returns: JSON  All of them.
json_merge_patch(fields, to_json(more))
