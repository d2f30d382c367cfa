-- Sends with their receives: when each started, which rank waited, and the bandwidth of the transfer.
--
-- The k-th send from rank A to rank B is paired with the k-th receive on rank B from rank A, as matched across ranks;
-- the send and the receive have the same collective_id. The transfer begins when both have started. If the send or the
-- receive is not in the traces, its columns are NULL and the waits are unknown. Messages without a recorded partner,
-- such as fused sends and receives, are excluded (the collectives analysis shows them). Times are on the clock shared
-- by all ranks.
--
-- Title: Sends and their receives
-- Shown: step, src_rank, dst_rank, bytes, transfer_ns, send_wait_ns, recv_wait_ns, bandwidth_gbps, last_rank
-- Status: stable
-- Since: 0.1
-- Reference: MindSpore Insight pipeline view, msprof-analyze p2p pairing
-- Needs: sends and receives that record their ranks
CREATE OR REPLACE MACRO p2p_pairs_v1(
    runs VARCHAR[] := NULL,
    -- Ranks to include, as sender or receiver; NULL means every rank.
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false
) AS TABLE
-- Columns:
--   run             VARCHAR         Run name.
--   collective_id   BIGINT          Id of the collective in the collectives analysis.
--   step            BIGINT          Profiler step of the sender, or of the receiver if the sender is missing; NULL outside steps.
--   src_rank        INTEGER         Sending rank.
--   dst_rank        INTEGER         Receiving rank.
--   src_stage       INTEGER         Pipeline stage of the sender, from 0; NULL without pipeline parallelism.
--   dst_stage       INTEGER         Pipeline stage of the receiver, from 0; NULL without pipeline parallelism.
--   is_forward      BOOLEAN         Whether the message goes to a later stage.
--   bytes           BIGINT [bytes]  Message size.
--   send_id         BIGINT          event_id of the sending kernel; NULL if not in the traces.
--   recv_id         BIGINT          event_id of the receiving kernel; NULL if not in the traces.
--   send_start_ns   BIGINT [ns]     Start of the send.
--   recv_start_ns   BIGINT [ns]     Start of the receive.
--   end_ns          BIGINT [ns]     Later of the two end times.
--   send_wait_ns    BIGINT [ns]     Time that the sender waits for the receiver, at most its own duration.
--   recv_wait_ns    BIGINT [ns]     Time that the receiver waits for the sender, at most its own duration.
--   transfer_ns     BIGINT [ns]     Time from the later start to the earlier end; NULL if the send or receive is missing.
--   bandwidth_gbps  DOUBLE [GB/s]   bytes / transfer_ns; NULL if either is unknown or 0.
--   last_rank       INTEGER         Rank that started last.
--   match_method    VARCHAR         How the collective was matched: seq (sequence number), ordinal, time, stream or none.
WITH
    messages AS (
        SELECT m.* FROM lib.p2p_messages(runs) AS m
    ),
    pairs AS (
        SELECT
            m.run, m.collective_id,
            -- If sender and receiver disagree, use the values of the lower-numbered rank.
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
    ),
    pipeline AS MATERIALIZED (
        FROM lib.pipeline_ranks(runs)
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
LEFT JOIN pipeline AS a ON a.run = p.run AND a.rank = p.src
LEFT JOIN pipeline AS b ON b.run = p.run AND b.rank = p.dst
WHERE
    (ranks IS NULL OR list_contains(ranks, p.src) OR list_contains(ranks, p.dst))
    AND lib.is_requested(steps, p.at_step)
    AND (include_last_profiler_step OR NOT p.is_of_last)
ORDER BY p.run, p.collective_id
