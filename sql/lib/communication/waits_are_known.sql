-- Whether a collective can be split into waiting for the last rank and transferring.
--
-- The ranks of a collective leave it together. If their end times disagree, events may not be one collective, and who waited is
-- not known. A sender may leave before the receiver, and on a host a rank goes on when it is woken: their ends show nothing.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib.waits_are_known(
    -- found_count: ranks on which the collective was found.
    rank_total,
    -- end_times_match: its end times agree.
    ends_agree,
    -- is_p2p: it is point to point.
    between_two,
    -- on_host: it ran on the host.
    ran_on_host
) AS
-- Returns: BOOLEAN  Whether its wait_ns and transfer_ns hold.
rank_total > 1 AND (ends_agree OR between_two OR ran_on_host)
