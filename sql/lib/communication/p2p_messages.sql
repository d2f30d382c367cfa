-- Sends and receives with a known partner: sending rank, receiving rank and times.
--
-- The partner comes from the pair that the kernel or its operator recorded, otherwise from a group of two ranks.
CREATE OR REPLACE MACRO lib.p2p_messages(
    runs
) AS TABLE
-- Columns:
--   run            VARCHAR         Run name.
--   rank           INTEGER         Rank of the process, sender or receiver.
--   event_id       BIGINT          event_id of the kernel.
--   collective_id  BIGINT          Id of the message, the same on both ranks.
--   step           BIGINT          Profiler step of the launch.
--   in_last_step   BOOLEAN         Whether it starts in or after the rank's last step.
--   is_send        BOOLEAN         Whether the rank is the sender.
--   src_rank       INTEGER         Sending rank.
--   dst_rank       INTEGER         Receiving rank.
--   bytes          BIGINT [bytes]  Message size; NULL if the number or type of elements is unknown.
--   start_ns       BIGINT [ns]     Start on the clock shared by all ranks.
--   end_ns         BIGINT [ns]     End on the clock shared by all ranks.
--   wait_ns        BIGINT [ns]     Time until the other rank started; NULL if the other rank has no matching operation.
--   transfer_ns    BIGINT [ns]     Time from the later start to the earlier end; NULL if the other rank has no matching operation.
--   match_method   VARCHAR         How the collective was matched: seq (sequence number), ordinal, time, stream or none.
WITH
    _sides AS (
        SELECT m.*, m.collective = 'send' AS is_send, m.member_ranks::INTEGER[] AS pair
        FROM matched_collectives AS m
        WHERE m.is_p2p AND m.collective IN ('send', 'recv') AND lib.is_requested(runs, m.run)
    ),
    _partners AS (
        SELECT s.*, CASE WHEN s.rank = s.pair[1] THEN s.pair[2] WHEN s.rank = s.pair[2] THEN s.pair[1] END AS partner
        FROM _sides AS s
        WHERE len(s.pair) = 2
    )
SELECT
    p.run, p.rank, p.event_id, p.collective_id, p.step, p.in_last_step, p.is_send,
    CASE WHEN p.is_send THEN p.rank ELSE p.partner END AS src_rank,
    CASE WHEN p.is_send THEN p.partner ELSE p.rank END AS dst_rank,
    lib.message_bytes(p.collective, p.elem_type, p.in_elems, p.out_elems) AS bytes,
    p.start_ns, p.end_ns, p.wait_ns, p.transfer_ns, p.match_method
FROM _partners AS p
WHERE p.partner IS NOT NULL
