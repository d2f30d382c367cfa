-- Waits of each rank in collectives, and the waits that it causes on other ranks.
--
-- In a collective, all ranks wait for the last rank. If the last rank has waited longer in other groups since the
-- previous collective of the group than a rank that waits for it, the difference is not the fault of the last rank
-- and is subtracted.
CREATE OR REPLACE MACRO lib.caused_waits(
    runs
) AS TABLE
-- Columns:
--   run                 VARCHAR         Run name.
--   rank                INTEGER         Rank of the process.
--   run_ns              BIGINT [ns]     Median length of the capture over the ranks.
--   collective_count    BIGINT [count]  Collectives found on all ranks of their groups, excluding sends and receives.
--   last_arrival_count  BIGINT [count]  Collectives in which the rank arrived last.
--   peer_count          BIGINT [count]  Number of other ranks in the groups of the rank.
--   wait_ns             BIGINT [ns]     Total wait of the rank, including sends and receives.
--   wait_caused_ns      BIGINT [ns]     Time that other ranks wait for this rank, minus its own earlier additional waits.
--   late_arrival_ns     BIGINT [ns]     How much later than the median rank this rank arrives, summed over its collectives; NULL without collectives.
--   after_first_ns      BIGINT [ns]     How much later than the first rank this rank arrives, summed over its collectives; NULL without collectives.
WITH
    _meetings AS MATERIALIZED (
        SELECT
            m.run, m.rank, m.span, m.collective_id, m.channel_id, m.end_ns, m.wait_ns, m.is_last, m.is_p2p,
            m.end_times_match AND NOT m.is_p2p AS is_used
        FROM matched_collectives AS m
        WHERE m.is_complete AND NOT m.is_startup AND lib.is_requested(runs, m.run)
    ),
    _observed AS (
        SELECT k.run, median(k.dur)::BIGINT AS run_ns FROM ranks AS k WHERE lib.is_requested(runs, k.run) GROUP BY k.run
    ),
    _running AS (
        SELECT m.*, sum(m.wait_ns) OVER (PARTITION BY m.run, m.rank, m.span ORDER BY m.end_ns, m.collective_id ROWS UNBOUNDED PRECEDING) AS waited
        FROM _meetings AS m
    ),
    _since AS MATERIALIZED (
        SELECT
            r.run, r.rank, r.collective_id, r.wait_ns, r.is_last, r.is_used,
            r.waited - r.wait_ns
                - coalesce(lag(r.waited) OVER (PARTITION BY r.run, r.span, r.channel_id, r.rank ORDER BY r.end_ns, r.collective_id), 0) AS elsewhere
        FROM _running AS r
    ),
    _last AS MATERIALIZED (
        SELECT s.run, s.collective_id, s.rank, s.elsewhere FROM _since AS s WHERE s.is_last AND s.is_used
    ),
    _blame AS (
        SELECT
            l.run, l.rank,
            count(DISTINCT l.collective_id) AS last_arrival_count,
            sum(greatest(0, s.wait_ns - greatest(0, l.elsewhere - s.elsewhere)))::BIGINT AS caused_ns
        FROM _last AS l
        JOIN _since AS s ON s.run = l.run AND s.collective_id = l.collective_id AND NOT s.is_last
        GROUP BY l.run, l.rank
    ),
    -- The upper median: of two ranks, the one that waits.
    _usual AS MATERIALIZED (
        SELECT s.run, s.collective_id, -quantile_disc(-s.wait_ns, 0.5) AS wait_ns, max(s.wait_ns) AS most_wait_ns
        FROM _since AS s
        WHERE s.is_used
        GROUP BY s.run, s.collective_id
    ),
    _lateness AS (
        SELECT
            s.run, s.rank,
            sum(greatest(0, u.wait_ns - s.wait_ns))::BIGINT AS late_arrival_ns, sum(u.most_wait_ns - s.wait_ns)::BIGINT AS after_first_ns
        FROM _since AS s
        JOIN _usual AS u ON u.run = s.run AND u.collective_id = s.collective_id
        GROUP BY s.run, s.rank
    ),
    _waits AS (
        SELECT
            m.run, m.rank, count_if(m.is_used)::BIGINT AS collective_count,
            coalesce(sum(m.wait_ns) FILTER (m.is_used OR m.is_p2p), 0)::BIGINT AS wait_ns
        FROM _meetings AS m
        GROUP BY m.run, m.rank
    ),
    _groups AS (
        SELECT m.run, m.channel_id, list(DISTINCT m.rank) AS members FROM _meetings AS m WHERE m.is_used GROUP BY m.run, m.channel_id
    ),
    _members AS (
        SELECT g.run, g.members, unnest(g.members) AS rank FROM _groups AS g
    ),
    _peers AS (
        SELECT m.run, m.rank, len(list_distinct(flatten(list(m.members)))) - 1 AS peer_count FROM _members AS m GROUP BY m.run, m.rank
    )
SELECT
    w.run, w.rank, o.run_ns, w.collective_count, coalesce(b.last_arrival_count, 0) AS last_arrival_count,
    p.peer_count, w.wait_ns, coalesce(b.caused_ns, 0) AS wait_caused_ns, l.late_arrival_ns, l.after_first_ns
FROM _waits AS w
JOIN _observed AS o ON o.run = w.run
LEFT JOIN _peers AS p ON p.run = w.run AND p.rank = w.rank
LEFT JOIN _blame AS b ON b.run = w.run AND b.rank = w.rank
LEFT JOIN _lateness AS l ON l.run = w.run AND l.rank = w.rank
