-- Duration of each node of a replay in each scenario.
--
-- Operations of different ranks correspond if they have the same name, kind and number since the last collective, in
-- the same step and stage. In the scenario "no late rank", operations of stragglers take the median time of the other
-- ranks, or no time if most of the other ranks do not have the operation. In "balanced", operations take the mean time
-- over the ranks of a stage; host work and delays are only shortened. In "link at peers' speed", transfers of channels
-- that take more than 1.25 times as long as the median of their peers (same collective, size and number of ranks) take
-- as long as the median. In "uniform", an operation takes the mean time of all operations with its name over all ranks
-- and steps, a transfer takes the median time, and host work and delays take at most the mean time. This is the ideal
-- in "Understanding stragglers in large model training using what-if analysis".
CREATE OR REPLACE MACRO lib.replay_values(
    -- Name of a relation with the columns of lib.replay_nodes.
    replay_nodes,
    -- Name of a relation with the columns of lib.replay_weights.
    replay_weights,
    -- Name of a relation with the columns of lib._replay_stragglers.
    replay_stragglers
) AS TABLE
-- Columns:
--   run              VARCHAR      Run name.
--   node_id          BIGINT       Number of the node.
--   is_straggler     BOOLEAN      Whether the node belongs to a straggler.
--   peer_own_ns      DOUBLE [ns]  Duration in the scenario "no late rank".
--   peer_host_ns     DOUBLE [ns]  Host work in that scenario.
--   peer_gap_ns      DOUBLE [ns]  Delay of an operation in that scenario.
--   mean_own_ns      DOUBLE [ns]  Duration in the scenario "balanced".
--   mean_host_ns     DOUBLE [ns]  Host work in that scenario.
--   mean_gap_ns      DOUBLE [ns]  Delay of an operation in that scenario.
--   peer_lag_ns      DOUBLE [ns]  Time from the last start of a collective to its end, in the scenario "link at peers' speed".
--   uniform_own_ns   DOUBLE [ns]  Duration in the scenario "uniform".
--   uniform_host_ns  DOUBLE [ns]  Host work in that scenario.
--   uniform_gap_ns   DOUBLE [ns]  Delay of an operation in that scenario.
--   uniform_lag_ns   DOUBLE [ns]  Time from the last start of a collective to its end in that scenario.
--   is_slow_link     BOOLEAN      Whether the node is a transfer of a channel that is slower than its peers.
WITH
    -- Ranks of a stage launch the same collectives in the same order, so collectives serve as anchors for all other
    -- nodes.
    _ordered AS (
        SELECT
            n.run, n.rank, n.span, n.node_id, n.stage, n.name_id, n.collective_id, n.channel_id, n.rank_count, n.elements, n.lag_ns, n.transfer_ns,
            CASE WHEN n.kind = 'operation' THEN n.queued_ns ELSE n.return_ns END AS at_ns,
            -- Calls have no class.
            n.class IS NOT DISTINCT FROM 'communication' AS is_anchor,
            coalesce(n.step, CASE WHEN n.kind <> 'operation' THEN last_value(n.step IGNORE NULLS) OVER (PARTITION BY n.run, n.rank, n.span ORDER BY n.node_id) END, -1) AS step
        FROM query_table(replay_nodes) AS n
    ),
    _anchored AS (
        SELECT
            n.*, count_if(n.is_anchor) OVER (PARTITION BY n.run, n.rank, n.span, n.step ORDER BY n.at_ns, n.node_id ROWS UNBOUNDED PRECEDING) AS segment
        FROM _ordered AS n
    ),
    _numbered AS MATERIALIZED (
        SELECT
            n.* EXCLUDE (at_ns, is_anchor), w.own_ns, w.host_ns, w.gap_ns, s.rank IS NOT NULL AS is_straggler,
            row_number() OVER (PARTITION BY n.run, n.rank, n.span, n.step, n.segment, n.name_id ORDER BY n.at_ns, n.node_id) AS nth
        FROM _anchored AS n
        JOIN query_table(replay_weights) AS w ON w.run = n.run AND w.node_id = n.node_id
        LEFT JOIN query_table(replay_stragglers) AS s ON s.run = n.run AND s.rank = n.rank
    ),
    _sizes AS (
        SELECT n.run, n.stage, count(DISTINCT n.rank) AS all_count, count(DISTINCT n.rank) FILTER (NOT n.is_straggler) AS other_count
        FROM _numbered AS n
        GROUP BY n.run, n.stage
    ),
    _means AS (
        SELECT
            n.run, n.stage, n.step, n.segment, n.name_id, n.nth, count(*) AS n_all, sum(n.own_ns) AS own_sum, avg(n.host_ns) AS host_mean,
            avg(n.gap_ns) AS gap_mean
        FROM _numbered AS n
        GROUP BY n.run, n.stage, n.step, n.segment, n.name_id, n.nth
    ),
    -- Medians are needed only for runs with stragglers.
    _medians AS (
        SELECT
            n.run, n.stage, n.step, n.segment, n.name_id, n.nth, count(*) AS n_others, median(n.own_ns) AS own_median,
            median(n.host_ns) AS host_median, median(n.gap_ns) AS gap_median
        FROM _numbered AS n
        WHERE NOT n.is_straggler AND EXISTS (FROM query_table(replay_stragglers) AS s WHERE s.run = n.run)
        GROUP BY n.run, n.stage, n.step, n.segment, n.name_id, n.nth
    ),
    _changed AS (
        SELECT
            n.run, n.node_id,
            CASE WHEN 2 * coalesce(p.n_others, 0) <= z.other_count THEN 0 ELSE p.own_median END AS own_ns,
            CASE WHEN 2 * coalesce(p.n_others, 0) <= z.other_count THEN 0 ELSE least(n.host_ns, p.host_median) END AS host_ns,
            CASE WHEN 2 * coalesce(p.n_others, 0) <= z.other_count THEN 0 ELSE least(n.gap_ns, p.gap_median) END AS gap_ns
        FROM _numbered AS n
        JOIN _sizes AS z ON z.run = n.run AND z.stage = n.stage
        LEFT JOIN _medians AS p
            ON p.run = n.run AND p.stage = n.stage AND p.step = n.step AND p.segment = n.segment AND p.name_id = n.name_id AND p.nth = n.nth
        WHERE n.is_straggler AND z.other_count > 0
    ),
    _names AS (
        SELECT
            n.run, n.name_id, avg(n.own_ns) AS own_mean, avg(n.host_ns) AS host_mean, avg(n.gap_ns) AS gap_mean, median(n.lag_ns) AS lag_median
        FROM _numbered AS n
        GROUP BY n.run, n.name_id
    ),
    _channels AS (
        SELECT n.run, n.channel_id, n.name_id, n.rank_count, n.elements, median(n.transfer_ns) AS transfer_ns
        FROM _numbered AS n
        WHERE n.channel_id IS NOT NULL
        GROUP BY n.run, n.channel_id, n.name_id, n.rank_count, n.elements
    ),
    _links AS (
        SELECT
            c.*, quantile_disc(c.transfer_ns, 0.5) OVER same AS lower_ns, count(*) OVER same AS channel_count
        FROM _channels AS c
        WINDOW same AS (PARTITION BY c.run, c.name_id, c.rank_count, c.elements)
    ),
    _slow AS (
        SELECT l.run, l.channel_id, l.name_id, l.rank_count, l.elements, l.lower_ns / l.transfer_ns AS share
        FROM _links AS l
        WHERE l.channel_count >= 3 AND l.transfer_ns > 1.25 * l.lower_ns
    )
SELECT
    n.run, n.node_id, n.is_straggler,
    coalesce(c.own_ns, n.own_ns)::DOUBLE AS peer_own_ns,
    coalesce(c.host_ns, n.host_ns)::DOUBLE AS peer_host_ns,
    coalesce(c.gap_ns, n.gap_ns)::DOUBLE AS peer_gap_ns,
    (p.own_sum / z.all_count)::DOUBLE AS mean_own_ns,
    CASE WHEN 2 * p.n_all <= z.all_count THEN 0 ELSE least(n.host_ns, p.host_mean) END::DOUBLE AS mean_host_ns,
    CASE WHEN 2 * p.n_all <= z.all_count THEN 0 ELSE least(n.gap_ns, p.gap_mean) END::DOUBLE AS mean_gap_ns,
    (n.lag_ns - n.transfer_ns * (1 - coalesce(s.share, 1)))::DOUBLE AS peer_lag_ns,
    m.own_mean::DOUBLE AS uniform_own_ns,
    least(n.host_ns, m.host_mean)::DOUBLE AS uniform_host_ns,
    least(n.gap_ns, m.gap_mean)::DOUBLE AS uniform_gap_ns,
    m.lag_median::DOUBLE AS uniform_lag_ns,
    s.share IS NOT NULL AS is_slow_link
FROM _numbered AS n
JOIN _sizes AS z ON z.run = n.run AND z.stage = n.stage
JOIN _means AS p
    ON p.run = n.run AND p.stage = n.stage AND p.step = n.step AND p.segment = n.segment AND p.name_id = n.name_id AND p.nth = n.nth
JOIN _names AS m ON m.run = n.run AND m.name_id = n.name_id
LEFT JOIN _changed AS c ON c.run = n.run AND c.node_id = n.node_id
LEFT JOIN _slow AS s
    ON s.run = n.run AND s.channel_id = n.channel_id AND s.name_id = n.name_id AND s.rank_count = n.rank_count
        AND s.elements IS NOT DISTINCT FROM n.elements
