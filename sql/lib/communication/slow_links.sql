-- Groups and pairs of ranks whose transfers are slower than those of other groups and pairs, block by block, and what
-- they cost.
--
-- Transfers are compared in the same way as the work of each rank. A link is slow if its transfers take at least 1.3
-- times as long as the median of the other links and the difference is significant. If several links are slow, and
-- one rank is in all of them and in no link of normal speed, the network of that rank is slow. The same applies to
-- hosts and the links that cross them.
CREATE OR REPLACE MACRO lib.slow_links(
    runs,
    -- Name of a relation with the columns of lib.rank_blocks.
    blocks,
    -- Name of a relation with the columns of lib.link_blocks.
    transfers,
    -- Name of a relation with the columns of lib.judged_blocks.
    judged_items,
    -- Minimum additional transfer time of a link, as a share of the compared time [%].
    min_pct
) AS TABLE
-- Columns:
--   run          VARCHAR         Run name.
--   channel_id   BIGINT          Number of the channel.
--   channel      VARCHAR         Ranks of the channel, the pair of a point-to-point operation, the group's name or the stream.
--   collective   VARCHAR         Collective that is slow, or p2p.
--   link_ranks   INTEGER[]       Ranks of the link.
--   is_certain   BOOLEAN         Whether the verdict is certain, as for a straggler; otherwise the link is only suspected.
--   ratio        DOUBLE [1]      Duration of the link's transfers, as a multiple of the median of the other links.
--   window_ns    BIGINT [ns]     Length of the blocks that were compared.
--   late_ns      BIGINT [ns]     Time of the link's transfers beyond the median of the other links.
--   cost_ns      BIGINT [ns]     late_ns, limited to the exposed transfer time of the link's ranks.
--   odds         DOUBLE [1]      Probability that any link is as slow as this one by chance.
--   common_rank  INTEGER         Rank that all slow links of the run have in common; NULL if there is none.
--   common_host  VARCHAR         Host that all slow links of the run and no other links cross; NULL if there is none, or if there is a common rank.
WITH
    _members AS MATERIALIZED (
        SELECT b.run, b.item_id AS channel_id, any_value(b.channel) AS channel, any_value(b.link_ranks) AS link_ranks, any_value(b.is_p2p) AS is_p2p
        FROM query_table(transfers) AS b
        GROUP BY b.run, b.item_id
    ),
    _judged AS MATERIALIZED (
        SELECT j.*, j.own_ns / nullif(j.peer_own_ns, 0) AS ratio
        FROM query_table(judged_items) AS j
        WHERE j.item_kind = 'link' AND j.peer_count >= 2
    ),
    -- Groups that cross hosts, with the hosts of their ranks.
    _channel_hosts AS MATERIALIZED (
        SELECT m.run, m.channel_id, list(DISTINCT k.host_name ORDER BY k.host_name) AS hosts
        FROM _members AS m
        JOIN ranks AS k ON k.run = m.run AND list_contains(m.link_ranks, k.rank)
        WHERE lib.is_requested(runs, k.run)
        GROUP BY m.run, m.channel_id
        HAVING count(DISTINCT k.host_name) > 1
    ),
    _means AS MATERIALIZED (
        SELECT
            b.run, b.set_id, b.item_id, h.hosts, count(*) AS block_count, avg(b.block_ns) AS block_ns, round(avg(b.own_ns))::BIGINT AS ns
        FROM query_table(transfers) AS b
        JOIN _channel_hosts AS h ON h.run = b.run AND h.channel_id = b.item_id
        GROUP BY b.run, b.set_id, b.item_id, h.hosts
    ),
    _split_by_host AS (
        SELECT
            m.run, m.set_id, h.host,
            count_if(list_contains(m.hosts, h.host)) AS own_n, count_if(NOT list_contains(m.hosts, h.host)) AS other_n,
            min(m.ns) FILTER (list_contains(m.hosts, h.host)) AS own_least, max(m.ns) FILTER (NOT list_contains(m.hosts, h.host)) AS other_most,
            avg(m.ns) FILTER (list_contains(m.hosts, h.host)) AS own_mean, avg(m.ns) FILTER (NOT list_contains(m.hosts, h.host)) AS other_mean,
            sum(m.ns::HUGEINT * m.ns)::DOUBLE AS square
        FROM _means AS m
        JOIN (SELECT DISTINCT n.run, n.set_id, unnest(n.hosts) AS host FROM _means AS n) AS h ON h.run = m.run AND h.set_id = m.set_id
        GROUP BY m.run, m.set_id, h.host
    ),
    -- A macro expands its arguments at every use, so each is computed once here.
    _distances AS (
        SELECT
            s.*, s.own_n + s.other_n - 2 AS freedom,
            (s.own_mean - s.other_mean) / sqrt(
                greatest(1, (s.square - s.own_n * s.own_mean * s.own_mean - s.other_n * s.other_mean * s.other_mean) / (s.own_n + s.other_n - 2))
                * (1 / s.own_n + 1 / s.other_n)
            ) AS errors
        FROM _split_by_host AS s
        WHERE s.own_n >= 2 AND s.other_n >= 2
    ),
    -- Hosts whose groups are all slower than all other groups, and Student's t-test between the two sets of groups,
    -- for every host and collective.
    _slow_hosts AS MATERIALIZED (
        SELECT
            d.run, d.set_id, d.host, d.other_mean,
            least(1, count(*) OVER (PARTITION BY d.run) * lib.student_tail(d.errors, d.freedom)) AS p,
            d.own_least > d.other_most AND d.own_mean >= lib.judging().link_ratio * d.other_mean AS is_apart
        FROM _distances AS d
    ),
    _slow_of_hosts AS (
        SELECT
            m.run, m.item_id, m.set_id, h.p <= lib.judging().late_odds AS is_certain, m.ns / h.other_mean AS ratio, m.block_count, m.block_ns, m.ns - h.other_mean AS late_ns, h.p
        FROM _slow_hosts AS h
        JOIN _means AS m ON m.run = h.run AND m.set_id = h.set_id AND list_contains(m.hosts, h.host)
        WHERE h.is_apart AND h.p <= lib.judging().suspected_odds AND m.block_count > 1
    ),
    _slow_items AS (
        SELECT j.run, j.item_id, j.set_id, j.level = 'late' AS is_certain, j.ratio, j.block_count, j.block_ns, j.mean_late_ns AS late_ns, j.p
        FROM _judged AS j
        WHERE j.level IN ('late', 'suspected') AND j.ratio >= lib.judging().link_ratio AND j.block_count > 1
        UNION ALL
        SELECT o.* FROM _slow_of_hosts AS o
    ),
    _slow AS MATERIALIZED (
        SELECT
            j.run, j.item_id AS channel_id, split_part(j.set_id, ' ', 1) AS collective, j.is_certain, j.ratio, j.block_count, j.block_ns, j.late_ns, j.p,
            m.channel, m.link_ranks
        FROM _slow_items AS j
        JOIN _members AS m ON m.run = j.run AND m.channel_id = j.item_id
        -- If a link is slow for several message sizes, take the size with the largest loss.
        QUALIFY row_number() OVER (PARTITION BY j.run, j.item_id ORDER BY j.late_ns DESC, j.set_id) = 1
    ),
    _fast_ranks AS (
        SELECT j.run, unnest(m.link_ranks) AS rank
        FROM _judged AS j
        JOIN _members AS m ON m.run = j.run AND m.channel_id = j.item_id
        ANTI JOIN _slow AS s ON s.run = j.run AND s.channel_id = j.item_id
        WHERE NOT m.is_p2p
    ),
    _memberships AS (
        SELECT s.run, unnest(s.link_ranks) AS rank FROM _slow AS s
    ),
    _common AS (
        SELECT m.run, m.rank
        FROM _memberships AS m
        JOIN (SELECT s.run, count(*) AS n FROM _slow AS s GROUP BY s.run) AS c ON c.run = m.run
        ANTI JOIN _fast_ranks AS f ON f.run = m.run AND f.rank = m.rank
        GROUP BY m.run, m.rank
        HAVING count(*) = any_value(c.n) AND count(*) > 1
        QUALIFY count(*) OVER (PARTITION BY m.run) = 1
    ),
    -- Compared links of normal speed cross only hosts whose network is not slow.
    _fast_hosts AS (
        SELECT DISTINCT m.run, unnest(m.hosts) AS host
        FROM _means AS m
        ANTI JOIN _slow AS s ON s.run = m.run AND s.channel_id = m.item_id
    ),
    _crossed AS (
        SELECT s.run, unnest(h.hosts) AS host
        FROM _slow AS s
        JOIN _channel_hosts AS h ON h.run = s.run AND h.channel_id = s.channel_id
    ),
    _common_host AS (
        SELECT x.run, x.host
        FROM _crossed AS x
        JOIN (SELECT s.run, count(*) AS n FROM _slow AS s GROUP BY s.run) AS c ON c.run = x.run
        ANTI JOIN _fast_hosts AS f ON f.run = x.run AND f.host = x.host
        GROUP BY x.run, x.host
        HAVING count(*) = any_value(c.n) AND count(*) > 1
        QUALIFY count(*) OVER (PARTITION BY x.run) = 1
    ),
    _exposed AS (
        SELECT s.run, s.channel_id, sum(b.transfer_ns) / count(DISTINCT b.item_id) AS ns
        FROM _slow AS s
        JOIN query_table(blocks) AS b ON b.run = s.run AND list_contains(s.link_ranks, b.item_id)
        GROUP BY s.run, s.channel_id
    )
SELECT
    s.run, s.channel_id, s.channel, s.collective, s.link_ranks, s.is_certain, s.ratio,
    round(s.block_ns * s.block_count)::BIGINT AS window_ns,
    round(s.late_ns * s.block_count)::BIGINT AS late_ns,
    round(least(s.late_ns * s.block_count, e.ns))::BIGINT AS cost_ns,
    s.p AS odds,
    c.rank AS common_rank,
    CASE WHEN c.rank IS NULL THEN h.host END AS common_host
FROM _slow AS s
JOIN _exposed AS e ON e.run = s.run AND e.channel_id = s.channel_id
LEFT JOIN _common AS c ON c.run = s.run
LEFT JOIN _common_host AS h ON h.run = s.run
WHERE 100::DOUBLE * least(s.late_ns * s.block_count, e.ns) >= min_pct * s.block_ns * s.block_count
