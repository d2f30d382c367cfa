-- All-to-all traffic matrix: bytes by source and destination rank of each process group.
--
-- Sizes come from the split sizes recorded by the sender, or by the receivers if the sender has no trace. Without split
-- sizes, the data is divided equally among the receiving ranks. Sizes that the profiler truncated ("[3, 5, ...]") or
-- did not record are not guessed. If such a size occurs, bytes is NULL, known_bytes is the volume of the known_count
-- collectives, and reason states why. Data that a rank sends to itself (src_rank = dst_rank) crosses no link. Kernels
-- named only SendRecv are not counted if the trace does not record which collective they run.
--
-- Title: All-to-all traffic between ranks
-- Shown: src_rank, dst_rank, bytes, ratio_to_mean, collective_count, pg_desc, kind, reason
-- Status: stable
-- Since: 0.1
-- Reference: TraceLens nccl_all2allv, msprof-analyze communication matrix
-- Needs: all-to-all collectives; sizes need arguments of collectives
-- Chart:
--   mark = "matrix"
--   title = "All-to-all traffic between ranks"
--   notes = [
--     "Strong color: much data. A strong row and column: the rank holds popular experts. Gray: unknown. Unknown sizes are not counted.",
--   ]
--   reason = "reason"
--   from = "src_rank"
--   to = "dst_rank"
--   value = "known_bytes"
--   measure = "Sent"
CREATE OR REPLACE MACRO all_to_all_traffic_v1(
    runs VARCHAR[] := NULL,
    -- Ranks to include, as source or destination; NULL means every rank.
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false,
    -- Whether to return one row per step.
    by_step BOOLEAN := false,
    -- Parallel dimensions of the job and their sizes, innermost first, as in tp2,dp4; NULL: taken from the group
    -- descriptions.
    layout VARCHAR := NULL
) AS TABLE
-- Columns:
--   run               VARCHAR         Run name.
--   pg_name           VARCHAR         Process group name; NULL if not recorded.
--   pg_desc           VARCHAR         Process group description.
--   pg_ranks          VARCHAR         Ranks of the group as JSON; NULL if unknown.
--   kind              VARCHAR         Kind of parallelism from the layout or description: dp, tp, pp, ep, cp or mp; NULL if unknown.
--   step              BIGINT          Profiler step; NULL for all steps together, and outside steps.
--   src_rank          INTEGER         Sending rank.
--   dst_rank          INTEGER         Receiving rank; NULL if the ranks of the group are unknown.
--   spans_hosts       BOOLEAN         Whether the two ranks are on different hosts; NULL if hosts are unknown.
--   collective_count  BIGINT [count]  Number of all-to-alls in which src_rank sends to dst_rank.
--   known_count       BIGINT [count]  Number of all-to-alls in collective_count with known sizes.
--   bytes             BIGINT [bytes]  Bytes sent; NULL unless all sizes are known.
--   known_bytes       BIGINT [bytes]  Bytes sent in the all-to-alls with known sizes; NULL if there are none.
--   row_count         BIGINT [count]  Rows sent (tokens, between experts); NULL unless all split sizes are known.
--   ratio_to_mean     DOUBLE [1]      bytes as a multiple of the mean over all pairs of the group; the largest value is the imbalance.
--   reason_code       VARCHAR         Code of the reason in the table messages.
--   reason            VARCHAR         Why bytes is unknown.
WITH
    labels AS (
        SELECT
            l.run, l.channel_id, min(l.group_name) AS pg_name, min(l.group_desc) AS pg_desc, min(l.group_ranks) AS pg_ranks,
            min(l.group_kind) AS kind
        FROM lib.group_labels(runs, layout) AS l
        GROUP BY l.run, l.channel_id
    ),
    pairs AS MATERIALIZED (
        SELECT
            p.run, p.channel_id, CASE WHEN by_step THEN p.step END AS step, p.src_rank, p.dst_rank,
            count(*) AS collective_count,
            count(p.sent_bytes) AS known_count,
            sum(p.sent_bytes)::BIGINT AS known_bytes,
            CASE WHEN count(p.sent_rows) = count(*) THEN sum(p.sent_rows)::BIGINT END AS row_count,
            min(p.reason_code) AS reason_code
        FROM lib.all_to_all_pairs(runs) AS p
        WHERE lib.is_requested(steps, p.step) AND (include_last_profiler_step OR NOT p.in_last_step)
        GROUP BY ALL
    ),
    totals AS (
        SELECT
            p.run, p.channel_id, p.step, CASE WHEN sum(p.known_count) = sum(p.collective_count) THEN sum(p.known_bytes)::DOUBLE / count(*) END AS mean_bytes
        FROM pairs AS p
        GROUP BY p.run, p.channel_id, p.step
    ),
    hosts AS (
        SELECT k.run, k.rank, k.host_name FROM ranks AS k
    )
SELECT
    p.run,
    l.pg_name,
    l.pg_desc,
    l.pg_ranks,
    l.kind,
    p.step,
    p.src_rank,
    p.dst_rank,
    s.host_name <> d.host_name AS spans_hosts,
    p.collective_count,
    p.known_count,
    CASE WHEN p.known_count = p.collective_count THEN p.known_bytes END AS bytes,
    p.known_bytes,
    p.row_count,
    p.known_bytes / nullif(t.mean_bytes, 0) AS ratio_to_mean,
    p.reason_code,
    m.message AS reason
FROM pairs AS p
JOIN labels AS l ON l.run = p.run AND l.channel_id = p.channel_id
JOIN totals AS t ON t.run = p.run AND t.channel_id = p.channel_id AND t.step IS NOT DISTINCT FROM p.step
LEFT JOIN hosts AS s ON s.run = p.run AND s.rank = p.src_rank
LEFT JOIN hosts AS d ON d.run = p.run AND d.rank = p.dst_rank
LEFT JOIN messages AS m ON m.code = p.reason_code
WHERE lib.is_requested(ranks, p.src_rank) OR lib.is_requested(ranks, p.dst_rank)
ORDER BY p.run, p.channel_id, p.step, p.src_rank, p.dst_rank
