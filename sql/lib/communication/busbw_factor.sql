-- What a collective's bandwidth (message size / time) is multiplied by for the load on the links, as
-- nccl-tests does: it can then be compared with what a link can do, whatever the number of ranks.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib.busbw_factor(
    -- all_reduce, all_gather, …
    collective_name,
    -- Ranks of the group.
    size_of_group
) AS
-- Returns: DOUBLE [1]  Factor; NULL for a barrier, and for what is not known.
CASE
    WHEN collective_name = 'all_reduce' THEN 2 * (size_of_group - 1) / size_of_group
    WHEN collective_name IN ('all_gather', 'reduce_scatter', 'all_to_all', 'gather', 'scatter') THEN (size_of_group - 1) / size_of_group
    WHEN collective_name IN ('broadcast', 'reduce', 'send', 'recv', 'send_recv') THEN 1.0
END::DOUBLE
