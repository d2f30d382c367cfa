-- Size of the message of a collective as nccl-tests counts it: what a rank has at the end of an
-- all-gather, a gather or a receive, and at the start of any other.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib.message_bytes(
    -- all_reduce, all_gather, …
    collective_name,
    -- Name of the type of an element.
    elem_type_name,
    -- Elements sent.
    sent_elems,
    -- Elements received.
    received_elems
) AS
-- Returns: BIGINT [bytes]  Size; NULL where elements or their type are not known.
lib.elem_bytes(elem_type_name)::BIGINT * CASE
    WHEN collective_name IN ('all_gather', 'gather', 'recv') THEN coalesce(nullif(received_elems, 0), sent_elems)
    ELSE coalesce(nullif(sent_elems, 0), received_elems)
END
