-- Message size of a collective as defined by nccl-tests: the output of a rank for an all-gather, a gather or a
-- receive, otherwise its input.
CREATE OR REPLACE MACRO lib.message_bytes(
    -- Kind of collective: all_reduce, all_gather, …
    collective_name,
    -- Name of the element type.
    elem_type_name,
    -- Number of elements sent.
    sent_elems,
    -- Number of elements received.
    received_elems
) AS
-- Returns: BIGINT [bytes]  Message size; NULL if the number or type of elements is unknown, or the product is beyond BIGINT.
TRY_CAST(lib.elem_bytes(elem_type_name)::HUGEINT * CASE
    WHEN collective_name IN ('all_gather', 'gather', 'recv') THEN coalesce(nullif(received_elems, 0), sent_elems)
    ELSE coalesce(nullif(sent_elems, 0), received_elems)
END AS BIGINT)
