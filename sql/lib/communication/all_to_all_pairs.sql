-- Rows and bytes that each rank sends to each rank of its group in every all-to-all, from the sender's record, or
-- from the receiver's record if the sender has no trace.
CREATE OR REPLACE MACRO lib.all_to_all_pairs(
    runs
) AS TABLE
-- Columns:
--   run            VARCHAR         Run name.
--   channel_id     BIGINT          Number of the channel of the group.
--   collective_id  BIGINT          Id of the collective, the same on all its ranks.
--   src_rank       INTEGER         Sending rank.
--   dst_rank       INTEGER         Receiving rank; NULL if the ranks of the group are unknown.
--   step           BIGINT          Profiler step.
--   in_last_step   BOOLEAN         Whether it starts in or after the rank's last step.
--   transfer_ns    BIGINT [ns]     Time from the last rank's start to the first rank's end; NULL unless the collective was found on all ranks.
--   sent_rows      BIGINT [1]      Rows sent; NULL if split sizes are unknown.
--   sent_bytes     BIGINT [bytes]  Bytes sent; NULL if unknown.
--   reason_code    VARCHAR         Code of the reason, in the table messages, why bytes are unknown.
WITH
    _sides AS MATERIALIZED (
        SELECT s.* FROM lib.all_to_all_sides(runs) AS s WHERE s.is_sent OR s.members IS NOT NULL
    ),
    _present AS (
        SELECT DISTINCT s.run, s.channel_id, s.rank FROM _sides AS s
    ),
    _ends AS (
        SELECT
            s.run, s.channel_id, s.collective_id, s.rank, s.is_sent, s.step, s.in_last_step, s.reason_code,
            CASE WHEN s.is_complete THEN s.transfer_ns END AS transfer_ns,
            unnest(coalesce(s.members, [NULL::INTEGER])) AS other,
            unnest(coalesce(s.split_rows, list_transform(coalesce(s.members, [NULL::INTEGER]), lambda x: NULL::BIGINT))) AS part_rows,
            unnest(coalesce(s.split_bytes, list_transform(coalesce(s.members, [NULL::INTEGER]), lambda x: NULL::BIGINT))) AS part_bytes
        FROM _sides AS s
    ),
    _gathered AS (
        SELECT
            e.run, e.channel_id, e.collective_id,
            CASE WHEN e.is_sent THEN e.rank ELSE e.other END AS src_rank,
            CASE WHEN e.is_sent THEN e.other ELSE e.rank END AS dst_rank,
            bool_or(e.is_sent) AS is_told_by_sender,
            coalesce(max(e.step) FILTER (e.is_sent), max(e.step)) AS step,
            coalesce(bool_or(e.in_last_step) FILTER (e.is_sent), bool_or(e.in_last_step)) AS in_last_step,
            max(e.transfer_ns) AS transfer_ns,
            coalesce(max(e.part_rows) FILTER (e.is_sent), max(e.part_rows)) AS part_rows,
            coalesce(max(e.part_bytes) FILTER (e.is_sent), max(e.part_bytes)) AS part_bytes,
            min(e.part_bytes) <> max(e.part_bytes) AS is_contradicted,
            coalesce(min(e.reason_code) FILTER (e.is_sent), min(e.reason_code)) AS reason_code
        FROM _ends AS e
        GROUP BY ALL
    )
SELECT
    g.run,
    g.channel_id,
    g.collective_id,
    g.src_rank,
    g.dst_rank,
    g.step,
    g.in_last_step,
    g.transfer_ns,
    CASE WHEN NOT g.is_contradicted THEN g.part_rows END AS sent_rows,
    CASE WHEN NOT g.is_contradicted THEN g.part_bytes END AS sent_bytes,
    CASE WHEN g.is_contradicted THEN 'all_to_all_traffic.sender_and_receiver_differ' WHEN g.part_bytes IS NULL THEN g.reason_code END AS reason_code
FROM _gathered AS g
LEFT JOIN _present AS p ON p.run = g.run AND p.channel_id = g.channel_id AND p.rank = g.src_rank
-- A receiver's record alone counts only if the sender has no trace with the group.
WHERE g.is_told_by_sender OR p.rank IS NULL
