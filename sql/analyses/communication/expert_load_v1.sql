-- Load balance of all-to-alls: bytes and tokens that each rank sends and receives, and the load of its experts.
--
-- Tokens go to their experts in one all-to-all and return in another. The load of a rank is measured in the direction
-- in which the ranks differ more: bytes received on the way to the experts, or bytes sent on the way back. imbalance is
-- the largest load divided by the mean load of the group's ranks; all ranks wait for the rank with the largest load.
-- Loads in bytes need only message sizes, so they are known even if split sizes were truncated; loads in rows (tokens)
-- need split sizes. Only collectives found on all ranks of the group have a load.
--
-- Title: Load balance of all-to-alls
-- Shown: rank, step, load_rows, load_bytes, ratio_to_mean, imbalance, wait_ns, pg_desc, reason
-- Also: moe balance, expert balance
-- Status: stable
-- Since: 0.1
-- Reference: TraceLens size_imbalance, msprof-analyze ep_load_balance
-- Needs: all-to-all collectives with arguments
-- Chart:
--   mark = "ranks"
--   title = "Load balance of experts"
--   notes = ["Bytes for the experts of a rank, relative to the mean of its group. All ranks wait for the highest bar."]
--   reason = "reason"
--   value = "ratio_to_mean"
--   measure = "Load / mean"
--   above = 1
CREATE OR REPLACE MACRO expert_load_v1(
    runs VARCHAR[] := NULL,
    -- Ranks to include; NULL means every rank. The comparison uses all ranks of a group.
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false,
    -- Whether to return one row per step.
    by_step BOOLEAN := false
) AS TABLE
-- Columns:
--   run               VARCHAR         Run name.
--   pg_name           VARCHAR         Process group name; NULL if not recorded.
--   pg_desc           VARCHAR         Process group description.
--   pg_ranks          VARCHAR         Ranks of the group as JSON; NULL if unknown.
--   step              BIGINT          Profiler step; NULL for all steps together, and outside steps.
--   rank              INTEGER         Rank of the process.
--   collective_count  BIGINT [count]  Number of all-to-alls.
--   sent_bytes        BIGINT [bytes]  Bytes sent, including bytes to the rank itself; NULL unless all sizes are known.
--   received_bytes    BIGINT [bytes]  Bytes received, including bytes from the rank itself; NULL unless all sizes are known.
--   sent_rows         BIGINT [1]      Rows (tokens) sent; NULL unless all split sizes are known.
--   received_rows     BIGINT [1]      Rows (tokens) received; NULL unless all split sizes are known.
--   load_count        BIGINT [count]  Number of all-to-alls found on all ranks of the group, with known sizes.
--   load_bytes        BIGINT [bytes]  Load in the load_count all-to-alls; NULL if load_count is 0.
--   load_rows         BIGINT [1]      Load in rows (tokens of the rank's experts); NULL unless all split sizes are known.
--   ratio_to_mean     DOUBLE [1]      Load as a multiple of the mean over the ranks of the group.
--   imbalance         DOUBLE [1]      Largest ratio_to_mean in the group; 1 means balanced.
--   wait_ns           BIGINT [ns]     Sum of the waits of the rank's all-to-alls until the last rank arrives; NULL if none is matched.
--   reason_code       VARCHAR         Code of the reason in the table messages.
--   reason            VARCHAR         Why the load is unknown.
WITH
    labels AS (
        SELECT l.run, l.channel_id, min(l.group_name) AS pg_name, min(l.group_desc) AS pg_desc, min(l.group_ranks) AS pg_ranks, max(l.group_count) AS n
        FROM lib.group_labels(runs, NULL) AS l
        GROUP BY l.run, l.channel_id
    ),
    parts AS MATERIALIZED (
        SELECT
            s.run, s.channel_id, s.collective_id, s.rank, s.event_id, any_value(CASE WHEN by_step THEN s.step END) AS step,
            any_value(s.found_count) AS found_count, any_value(s.wait_ns) AS wait_ns,
            max(s.total_bytes) FILTER (s.is_sent) AS sent_bytes, max(s.total_bytes) FILTER (NOT s.is_sent) AS received_bytes,
            max(s.total_rows) FILTER (s.is_sent) AS sent_rows, max(s.total_rows) FILTER (NOT s.is_sent) AS received_rows
        FROM lib.all_to_all_sides(runs) AS s
        WHERE lib.is_requested(steps, s.step) AND (include_last_profiler_step OR NOT s.in_last_step)
        GROUP BY s.run, s.channel_id, s.collective_id, s.rank, s.event_id
    ),
    collectives AS (
        SELECT
            p.run, p.channel_id, p.collective_id,
            count(*) = any_value(l.n) AND count(p.sent_bytes) = count(*) AND count(p.received_bytes) = count(*) AS is_known,
            -- The total sent equals the total received, so the direction with the larger maximum is less balanced.
            max(p.sent_bytes) > max(p.received_bytes) AS is_way_back
        FROM parts AS p
        JOIN labels AS l ON l.run = p.run AND l.channel_id = p.channel_id
        GROUP BY p.run, p.channel_id, p.collective_id
    ),
    loaded AS MATERIALIZED (
        SELECT
            p.run, p.channel_id, p.step, p.rank,
            count(*) AS collective_count,
            CASE WHEN count(p.sent_bytes) = count(*) THEN sum(p.sent_bytes)::BIGINT END AS sent_bytes,
            CASE WHEN count(p.received_bytes) = count(*) THEN sum(p.received_bytes)::BIGINT END AS received_bytes,
            CASE WHEN count(p.sent_rows) = count(*) THEN sum(p.sent_rows)::BIGINT END AS sent_rows,
            CASE WHEN count(p.received_rows) = count(*) THEN sum(p.received_rows)::BIGINT END AS received_rows,
            count(*) FILTER (c.is_known) AS load_count,
            sum(CASE WHEN c.is_way_back THEN p.sent_bytes ELSE p.received_bytes END) FILTER (c.is_known)::BIGINT AS load_bytes,
            CASE
                WHEN count(CASE WHEN c.is_way_back THEN p.sent_rows ELSE p.received_rows END) FILTER (c.is_known) = count(*) FILTER (c.is_known)
                    THEN sum(CASE WHEN c.is_way_back THEN p.sent_rows ELSE p.received_rows END) FILTER (c.is_known)::BIGINT
            END AS load_rows,
            sum(p.wait_ns)::BIGINT AS wait_ns,
            count(p.sent_bytes) AS sized_count
        FROM parts AS p
        JOIN collectives AS c ON c.run = p.run AND c.channel_id = p.channel_id AND c.collective_id = p.collective_id
        GROUP BY p.run, p.channel_id, p.step, p.rank
    ),
    compared AS (
        SELECT
            l.*,
            l.load_bytes / nullif(sum(l.load_bytes) OVER each_group::DOUBLE / count(l.load_bytes) OVER each_group, 0) AS ratio_to_mean
        FROM loaded AS l
        WINDOW each_group AS (PARTITION BY l.run, l.channel_id, l.step)
    ),
    judged AS (
        SELECT
            c.*, max(c.ratio_to_mean) OVER (PARTITION BY c.run, c.channel_id, c.step) AS imbalance,
            CASE
                WHEN c.load_count > 0 THEN NULL
                WHEN c.sized_count = 0 THEN 'expert_load.sizes_not_recorded'
                ELSE 'expert_load.not_matched'
            END AS reason_code
        FROM compared AS c
    )
SELECT
    j.run,
    l.pg_name,
    l.pg_desc,
    l.pg_ranks,
    j.step,
    j.rank,
    j.collective_count,
    j.sent_bytes,
    j.received_bytes,
    j.sent_rows,
    j.received_rows,
    j.load_count,
    j.load_bytes,
    j.load_rows,
    j.ratio_to_mean,
    j.imbalance,
    j.wait_ns,
    j.reason_code,
    t.message AS reason
FROM judged AS j
JOIN labels AS l ON l.run = j.run AND l.channel_id = j.channel_id
LEFT JOIN messages AS t ON t.code = j.reason_code
WHERE lib.is_requested(ranks, j.rank)
ORDER BY j.run, j.channel_id, j.step, j.rank
