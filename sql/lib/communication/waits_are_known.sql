-- Whether a collective can be split into waiting for the last rank and transferring.
--
-- The ranks of a collective leave it together. If their end times disagree, the events may not be one collective, and
-- the waits are unknown. A sender may leave before the receiver, and on a host a rank continues when it is scheduled,
-- so the ends of these give no evidence.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib.waits_are_known(
    -- found_count: number of ranks on which the collective was found.
    rank_total,
    -- end_times_match: whether its end times agree.
    ends_agree,
    -- is_p2p: whether it is a point-to-point operation.
    between_two,
    -- on_host: whether it ran on the host.
    ran_on_host
) AS
-- Returns: BOOLEAN  Whether its wait_ns and transfer_ns are valid.
rank_total > 1 AND (ends_agree OR between_two OR ran_on_host)
