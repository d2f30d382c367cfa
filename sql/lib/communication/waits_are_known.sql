-- Whether a collective can be split into waiting for the last rank and transferring.
--
-- The ranks of a collective leave it together. If their end times disagree, the events may not be one collective, and
-- the waits are unknown. A sender may leave before the receiver, and on the host a rank continues only when it is
-- scheduled, so the end times of these operations give no evidence.
CREATE OR REPLACE MACRO lib.waits_are_known(
    -- found_count: number of ranks on which the collective was found.
    rank_total,
    -- end_times_match: whether the end times of the collective agree.
    ends_agree,
    -- is_p2p: whether the collective is a point-to-point operation.
    between_two,
    -- on_host: whether the collective ran on the host.
    ran_on_host
) AS
-- Returns: BOOLEAN  Whether wait_ns and transfer_ns of the collective are valid.
rank_total > 1 AND (ends_agree OR between_two OR ran_on_host)
