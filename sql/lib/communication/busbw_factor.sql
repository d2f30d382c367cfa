-- Factor that converts a collective's algorithm bandwidth (message size / time) to its bus bandwidth, as in
-- nccl-tests.
--
-- Bus bandwidth is the load on the links. It can be compared with the link's peak for any number of ranks.
CREATE OR REPLACE MACRO lib.busbw_factor(
    -- Kind of collective: all_reduce, all_gather, …
    collective_name,
    -- Number of ranks in the group.
    size_of_group
) AS
-- Returns: DOUBLE [1]  Factor; NULL for a barrier or an unknown collective.
CASE
    WHEN collective_name = 'all_reduce' THEN 2 * (size_of_group - 1) / size_of_group
    WHEN collective_name IN ('all_gather', 'reduce_scatter', 'all_to_all', 'gather', 'scatter') THEN (size_of_group - 1) / size_of_group
    WHEN collective_name IN ('broadcast', 'reduce', 'send', 'recv', 'send_recv') THEN 1.0
END::DOUBLE
