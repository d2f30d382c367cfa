-- Rows and bytes that each rank sends to and receives from each rank of the group in every all-to-all.
--
-- Split sizes count rows (along the first dimension), whereas message sizes count elements; the number of elements
-- per row follows from the two. Missing split sizes ("[]") mean equal parts. Sizes that the profiler did not record,
-- or truncated ("[3, 5, ...]"), are NULL with a reason.
CREATE OR REPLACE MACRO lib.all_to_all_sides(
    runs
) AS TABLE
-- Columns:
--   run            VARCHAR         Run name.
--   rank           INTEGER         Rank of the process.
--   event_id       BIGINT          event_id of the kernel.
--   collective_id  BIGINT          Id of the collective, the same on all its ranks.
--   channel_id     BIGINT          Number of the channel of the group.
--   pg_name        VARCHAR         Recorded process group name.
--   step           BIGINT          Profiler step.
--   in_last_step   BOOLEAN         Whether it starts in or after the rank's last step.
--   is_complete    BOOLEAN         Whether the collective was found on all ranks whose traces contain the group.
--   found_count    BIGINT [count]  Number of ranks on which the collective was found.
--   wait_ns        BIGINT [ns]     Time until the last rank started.
--   transfer_ns    BIGINT [ns]     Time from the last rank's start to the first rank's end.
--   members        INTEGER[]       Ranks of the group in order; NULL if unknown.
--   is_sent        BOOLEAN         Whether the row describes what the rank sends; otherwise what it receives.
--   total_rows     BIGINT [1]      Rows of the message; NULL if split sizes are unknown.
--   total_bytes    BIGINT [bytes]  Message size.
--   split_rows     BIGINT[]        Rows per member; NULL if unknown.
--   split_bytes    BIGINT[]        Bytes per member; NULL if unknown.
--   reason_code    VARCHAR         Code of the reason, in the table messages, why the bytes per member are unknown.
WITH
    _parts AS MATERIALIZED (
        SELECT m.*
        FROM matched_collectives AS m
        WHERE m.collective = 'all_to_all' AND lib.is_requested(runs, m.run)
    ),
    _sides AS (
        SELECT p.*, true AS is_sent, p.in_split_sizes AS split_text, p.in_elems AS elems FROM _parts AS p
        UNION ALL
        SELECT p.*, false, p.out_split_sizes, p.out_elems FROM _parts AS p
    ),
    _texts AS (
        SELECT
            t.split_text,
            contains(t.split_text, '...') AS is_cut,
            CASE WHEN NOT contains(t.split_text, '...') THEN list_transform(regexp_extract_all(t.split_text, '\d+'), lambda x: TRY_CAST(x AS BIGINT)) END AS parts
        FROM (SELECT DISTINCT s.split_text FROM _sides AS s) AS t
    ),
    _groups AS (
        SELECT DISTINCT p.member_ranks, p.member_ranks::INTEGER[] AS members FROM _parts AS p
    ),
    _read AS (
        SELECT
            s.*, g.members, t.is_cut, t.parts, len(g.members) AS n, list_sum(t.parts)::BIGINT AS row_count,
            lib.elem_bytes(s.elem_type)::BIGINT AS elem_bytes
        FROM _sides AS s
        JOIN _texts AS t ON t.split_text IS NOT DISTINCT FROM s.split_text
        JOIN _groups AS g ON g.member_ranks IS NOT DISTINCT FROM s.member_ranks
    ),
    _judged AS (
        SELECT
            r.*,
            CASE
                WHEN r.elems IS NULL OR r.elem_bytes IS NULL THEN 'all_to_all_traffic.sizes_not_recorded'
                WHEN r.members IS NULL THEN 'all_to_all_traffic.ranks_not_recorded'
                WHEN r.split_text IS NULL THEN 'all_to_all_traffic.split_sizes_not_recorded'
                WHEN r.is_cut THEN 'all_to_all_traffic.split_sizes_cut'
                WHEN len(r.parts) = 0 AND r.elems % r.n <> 0 THEN 'all_to_all_traffic.unequal_parts'
                WHEN len(r.parts) > 0 AND len(r.parts) <> r.n THEN 'all_to_all_traffic.split_sizes_miscounted'
                WHEN len(r.parts) > 0 AND (CASE WHEN r.row_count = 0 THEN r.elems ELSE r.elems % r.row_count END) <> 0
                    THEN 'all_to_all_traffic.split_sizes_unfitting'
            END AS reason_code
        FROM _read AS r
    )
SELECT
    j.run,
    j.rank,
    j.event_id,
    j.collective_id,
    j.channel_id,
    j.pg_name,
    j.step,
    j.in_last_step,
    j.is_complete,
    j.found_count,
    j.wait_ns,
    j.transfer_ns,
    j.members,
    j.is_sent,
    CASE WHEN len(j.parts) > 0 AND j.reason_code IS NULL THEN j.row_count END AS total_rows,
    j.elems * j.elem_bytes AS total_bytes,
    CASE WHEN len(j.parts) > 0 AND j.reason_code IS NULL THEN j.parts END AS split_rows,
    CASE
        WHEN j.reason_code IS NOT NULL THEN NULL
        WHEN len(j.parts) = 0 THEN list_transform(j.members, lambda x: j.elems // j.n * j.elem_bytes)
        ELSE list_transform(j.parts, lambda x: x * coalesce(j.elems // nullif(j.row_count, 0), 0) * j.elem_bytes)
    END AS split_bytes,
    j.reason_code
FROM _judged AS j
