-- Sends and their receives: when either side came, who waited, and how fast the data then moved.
--
-- The k-th send from one rank to another is the k-th receive there, as matching across ranks has it: both
-- sides have one collective_id. Transfer begins when both are there. A message whose other side is not in the
-- traces has NULL for it, and nothing is known of waits. Messages of which no partner is recorded, as fused
-- sends and receives, are not here (they are in collectives). Times are in the time that all ranks share.
--
-- Title: Sends and their receives
-- Status: stable
-- Since: 0.1
-- Reference: MindSpore Insight pipeline view, msprof-analyze p2p pairing
-- Needs: sends and receives that record their ranks
CREATE OR REPLACE MACRO p2p_pairs_v1(
    -- Runs to include; NULL means every run.
    runs VARCHAR[] := NULL,
    -- Ranks to include, as sender or receiver; NULL means every rank.
    ranks INTEGER[] := NULL,
    -- Profiler steps to include; NULL means every step and all activity outside steps.
    steps BIGINT[] := NULL,
    -- Whether to include the last profiler step of a run with two or more.
    include_last_profiler_step BOOLEAN := false
) AS TABLE
-- Columns:
--   run             VARCHAR         Run name.
--   collective_id   BIGINT          Number of the message, as in collectives.
--   step            BIGINT          Profiler step of the sender, else of the receiver; NULL outside of steps.
--   src_rank        INTEGER         Sending rank.
--   dst_rank        INTEGER         Receiving rank.
--   src_stage       INTEGER         Stage of the sender, from 0; NULL where the ranks are no pipeline.
--   dst_stage       INTEGER         Stage of the receiver.
--   is_forward      BOOLEAN         To a later stage.
--   bytes           BIGINT [bytes]  Size of the message.
--   send_id         BIGINT          event_id of the sending kernel; NULL where it is not in the traces.
--   recv_id         BIGINT          event_id of the receiving kernel; likewise.
--   send_start_ns   BIGINT [ns]     Start of the send.
--   recv_start_ns   BIGINT [ns]     Start of the receive.
--   end_ns          BIGINT [ns]     Later end of the two.
--   send_wait_ns    BIGINT [ns]     Wait of the sender for the receiver, at most as long as it was there.
--   recv_wait_ns    BIGINT [ns]     Wait of the receiver for the sender, likewise.
--   transfer_ns     BIGINT [ns]     From the later start to the first end; NULL without the other side.
--   bandwidth_gbps  DOUBLE [GB/s]   Message / transfer; NULL where either is not known or 0.
--   last_rank       INTEGER         Who came last.
--   match_method    VARCHAR         seq, ordinal, time, stream or none.
WITH
    messages AS (
        SELECT m.* FROM lib.p2p_messages(runs) AS m
    ),
    pairs AS (
        SELECT
            m.run, m.collective_id,
            -- Where the two do not agree, what the lower rank says.
            arg_min(m.src_rank, m.rank) AS src,
            arg_min(m.dst_rank, m.rank) AS dst,
            coalesce(max(CASE WHEN m.is_send THEN m.step END), max(m.step)) AS at_step,
            coalesce(bool_or(CASE WHEN m.is_send THEN m.in_last_step END), bool_or(m.in_last_step)) AS is_of_last,
            coalesce(max(CASE WHEN m.is_send THEN m.bytes END), max(m.bytes)) AS size,
            max(CASE WHEN m.is_send THEN m.event_id END) AS send_id,
            max(CASE WHEN NOT m.is_send THEN m.event_id END) AS recv_id,
            max(CASE WHEN m.is_send THEN m.start_ns END) AS send_start,
            max(CASE WHEN NOT m.is_send THEN m.start_ns END) AS recv_start,
            max(m.end_ns) AS last_end,
            max(CASE WHEN m.is_send THEN m.wait_ns END) AS send_wait,
            max(CASE WHEN NOT m.is_send THEN m.wait_ns END) AS recv_wait,
            max(m.transfer_ns) AS transferred,
            arg_min(m.match_method, m.rank) AS method
        FROM messages AS m
        GROUP BY m.run, m.collective_id
    )
SELECT
    p.run,
    p.collective_id,
    p.at_step AS step,
    p.src AS src_rank,
    p.dst AS dst_rank,
    a.stage AS src_stage,
    b.stage AS dst_stage,
    a.stage < b.stage AS is_forward,
    p.size AS bytes,
    p.send_id,
    p.recv_id,
    p.send_start AS send_start_ns,
    p.recv_start AS recv_start_ns,
    p.last_end AS end_ns,
    p.send_wait AS send_wait_ns,
    p.recv_wait AS recv_wait_ns,
    p.transferred AS transfer_ns,
    p.size / nullif(p.transferred, 0) AS bandwidth_gbps,
    CASE WHEN p.send_start > p.recv_start THEN p.src WHEN p.recv_start > p.send_start THEN p.dst END AS last_rank,
    p.method AS match_method
FROM pairs AS p
LEFT JOIN lib.pipeline_ranks(runs) AS a ON a.run = p.run AND a.rank = p.src
LEFT JOIN lib.pipeline_ranks(runs) AS b ON b.run = p.run AND b.rank = p.dst
WHERE
    (ranks IS NULL OR list_contains(ranks, p.src) OR list_contains(ranks, p.dst))
    AND lib.is_requested(steps, p.at_step)
    AND (include_last_profiler_step OR NOT p.is_of_last)
ORDER BY p.run, p.collective_id
