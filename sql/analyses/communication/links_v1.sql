-- Links between ranks: time, volume and bandwidth of each pair, and links that are slow.
--
-- Kineto records source and destination ranks for sends, receives and all-to-alls; the links used by a ring or tree
-- all-reduce are not recorded. A transfer by send and receive lasts from the later of the two starts to the earlier of
-- the two ends (p2p_pairs lists each send). An all-to-all uses all its pairs at once, and only the time of the slowest
-- pair is known. This time is used for every pair, so the bandwidth of an all-to-all is a lower bound. MindSpore
-- cluster data has measured links. A link is slow if its median bandwidth is below 80 % of the median of its peers, and
-- below the lower fence of its peers: first quartile - 1.5 * interquartile range. Peers are links of the same run,
-- operation and locality (within or between hosts), whose median message sizes lie between the same two powers of two.
-- With fewer than four peers there is no verdict.
--
-- Title: Links between ranks
-- Shown: src_rank, dst_rank, median_gbps, peer_median_gbps, is_slow, bytes, transfer_count, operation, reason
-- Status: stable
-- Since: 0.1
-- Reference: MindSpore Insight link matrix, msprof-analyze slow_link
-- Needs: sends and receives, all-to-alls with split sizes, or MindSpore cluster data
-- Chart:
--   mark = "matrix"
--   title = "Bandwidth of links"
--   notes = [
--     "Median of the transfers. For an all-to-all, this is a lower bound of the link's bandwidth. Gray: unknown.",
--   ]
--   reason = "reason"
--   from = "src_rank"
--   to = "dst_rank"
--   value = "median_gbps"
--   measure = "GB/s"
--   combine = "max"
CREATE OR REPLACE MACRO links_v1(
    runs VARCHAR[] := NULL,
    -- Ranks to include, as source or destination; NULL means every rank.
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false
) AS TABLE
-- Columns:
--   run               VARCHAR         Run name.
--   operation         VARCHAR         p2p, all_to_all, or measured (by MindSpore).
--   src_rank          INTEGER         Sending rank.
--   dst_rank          INTEGER         Receiving rank.
--   spans_hosts       BOOLEAN         Whether the two ranks are on different hosts; NULL if hosts are unknown.
--   transfer_count    BIGINT [count]  Number of transfers.
--   timed_count       BIGINT [count]  Number of transfers with a known time: both ranks are in the store.
--   bytes             BIGINT [bytes]  Total volume; NULL unless all sizes are known.
--   transfer_ns       BIGINT [ns]     Total time of the timed transfers; NULL if there are none.
--   min_ns            DOUBLE [ns]     Shortest duration.
--   p25_ns            DOUBLE [ns]     First quartile of the durations.
--   median_ns         DOUBLE [ns]     Median duration.
--   p75_ns            DOUBLE [ns]     Third quartile of the durations.
--   max_ns            DOUBLE [ns]     Longest duration.
--   mean_gbps         DOUBLE [GB/s]   Volume / time of the transfers for which both are known.
--   min_gbps          DOUBLE [GB/s]   Lowest bandwidth.
--   p25_gbps          DOUBLE [GB/s]   First quartile of the bandwidth.
--   median_gbps       DOUBLE [GB/s]   Median bandwidth.
--   p75_gbps          DOUBLE [GB/s]   Third quartile of the bandwidth.
--   max_gbps          DOUBLE [GB/s]   Highest bandwidth.
--   peer_count        BIGINT [count]  Number of peers, including the link itself.
--   peer_median_gbps  DOUBLE [GB/s]   Median of the peers' median bandwidths.
--   is_slow           BOOLEAN         Whether the link is slower than its peers; NULL for all-to-alls and with fewer than four peers.
--   reason_code       VARCHAR         Code of the reason in the table messages.
--   reason            VARCHAR         Why the bandwidth is unknown.
WITH
    sends AS (
        SELECT
            m.run, m.src_rank, m.dst_rank,
            coalesce(min(m.step) FILTER (m.is_send), min(m.step)) AS step,
            coalesce(bool_or(m.in_last_step) FILTER (m.is_send), bool_or(m.in_last_step)) AS in_last_step,
            max(m.bytes) AS size,
            -- A time of 0 means that the sender or receiver ended before the other started, so the true transfer time
            -- is unknown.
            CASE WHEN count(*) = 2 THEN nullif(max(m.transfer_ns), 0) END AS ns
        FROM lib.p2p_messages(runs) AS m
        GROUP BY m.run, m.collective_id, m.src_rank, m.dst_rank
    ),
    hosts AS (
        SELECT k.run, k.rank, k.host_name FROM ranks AS k WHERE lib.is_requested(runs, k.run)
    ),
    samples AS MATERIALIZED (
        SELECT s.run, 'p2p' AS operation, s.src_rank, s.dst_rank, NULL::BOOLEAN AS is_far, s.size, s.ns
        FROM sends AS s
        WHERE lib.is_requested(steps, s.step) AND (include_last_profiler_step OR NOT s.in_last_step)
        UNION ALL
        SELECT p.run, 'all_to_all', p.src_rank, p.dst_rank, NULL, p.sent_bytes, p.transfer_ns
        FROM lib.all_to_all_pairs(runs) AS p
        WHERE p.src_rank <> p.dst_rank AND lib.is_requested(steps, p.step) AND (include_last_profiler_step OR NOT p.in_last_step)
        UNION ALL
        SELECT c.run, 'measured', c.src_rank::INTEGER, c.dst_rank::INTEGER, c.link_type = 'RDMA', c.bytes, c.dur
        FROM cluster_links AS c
        WHERE c.src_rank <> c.dst_rank AND c.operator IS NOT NULL AND c.step IS NOT NULL AND lib.is_requested(runs, c.run) AND lib.is_requested(steps, c.step)
    ),
    rated AS (
        SELECT s.*, s.size / nullif(s.ns, 0) AS rate FROM samples AS s
    ),
    summed AS (
        SELECT
            r.run, r.operation, r.src_rank, r.dst_rank, bool_or(r.is_far) AS is_far,
            count(*) AS transfer_count,
            count(r.ns) AS timed_count,
            count(r.size) AS sized_count,
            sum(r.size)::BIGINT AS bytes,
            sum(r.ns)::BIGINT AS ns,
            quantile_cont(r.ns::DOUBLE, [0, 0.25, 0.5, 0.75, 1]) AS times,
            quantile_cont(r.rate, [0, 0.25, 0.5, 0.75, 1]) AS rates,
            sum(r.size) FILTER (r.ns > 0) / sum(r.ns) FILTER (r.ns > 0 AND r.size IS NOT NULL) AS mean_gbps,
            floor(log2(nullif(quantile_cont(r.size::DOUBLE, 0.5), 0))) AS size_class
        FROM rated AS r
        GROUP BY r.run, r.operation, r.src_rank, r.dst_rank
    ),
    placed AS (
        SELECT s.*, coalesce(a.host_name <> b.host_name, s.is_far) AS spans_hosts
        FROM summed AS s
        LEFT JOIN hosts AS a ON a.run = s.run AND a.rank = s.src_rank
        LEFT JOIN hosts AS b ON b.run = s.run AND b.rank = s.dst_rank
    ),
    compared AS (
        SELECT
            p.*,
            count(p.rates[3]) OVER peers AS peer_count,
            quantile_cont(p.rates[3], [0.25, 0.5, 0.75]) OVER peers AS fence
        FROM placed AS p
        WINDOW peers AS (PARTITION BY p.run, p.operation, p.spans_hosts, p.size_class)
    ),
    reasoned AS (
        SELECT
            c.*,
            CASE
                WHEN c.rates IS NOT NULL THEN NULL
                WHEN c.sized_count = 0 THEN 'links.unknown_sizes'
                WHEN c.timed_count = 0 THEN 'links.unknown_times'
                ELSE 'links.no_size_with_time'
            END AS reason_code
        FROM compared AS c
    )
SELECT
    c.run,
    c.operation,
    c.src_rank,
    c.dst_rank,
    c.spans_hosts,
    c.transfer_count,
    c.timed_count,
    CASE WHEN c.sized_count = c.transfer_count THEN c.bytes END AS bytes,
    c.ns AS transfer_ns,
    c.times[1] AS min_ns,
    c.times[2] AS p25_ns,
    c.times[3] AS median_ns,
    c.times[4] AS p75_ns,
    c.times[5] AS max_ns,
    c.mean_gbps,
    c.rates[1] AS min_gbps,
    c.rates[2] AS p25_gbps,
    c.rates[3] AS median_gbps,
    c.rates[4] AS p75_gbps,
    c.rates[5] AS max_gbps,
    c.peer_count,
    c.fence[2] AS peer_median_gbps,
    CASE
        WHEN c.operation <> 'all_to_all' AND c.peer_count >= 4
            THEN c.rates[3] < 0.8 * c.fence[2] AND c.rates[3] < c.fence[1] - 1.5 * (c.fence[3] - c.fence[1])
    END AS is_slow,
    c.reason_code,
    t.message AS reason
FROM reasoned AS c
LEFT JOIN messages AS t ON t.code = c.reason_code
WHERE lib.is_requested(ranks, c.src_rank) OR lib.is_requested(ranks, c.dst_rank)
ORDER BY c.run, c.operation, c.src_rank, c.dst_rank
