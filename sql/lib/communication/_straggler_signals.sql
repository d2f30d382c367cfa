-- Which rank holds up the others: how much less it waits than they do, and whether chance could do that.
--
-- All ranks of a job go round together, and each one's time is its own work, its waits and the
-- transfers. Who holds up the others is who waits less than they, summed over ALL its groups: a rank that is
-- late in an outer group only because it waited in an inner one has waited as long as its victims.
-- excess_ns is what a rank waits less than the median of the ranks that it shares groups with; of that the
-- share of its largest single event is taken off, as one accident is no habit.
--
-- Whether chance could do that: the lateness of each rank in each collective, against the median rank, is
-- scored by its logarithm (in units of three times the median lateness of the group), so that a rare long
-- hiccup counts for a few usual ones. A group counts by that median: ranks that meet again with no work
-- between them come in any order, within microseconds, and say little. Were it drawn by chance who has which score, the sum of a rank's
-- scores would have the variance of the scores within each collective and their skew, which the
-- formula of Wilson and Hilferty takes off (lateness_z). Where lateness lasts from one collective to the next (sums over eighths
-- of the capture vary more than single ones), the variance is that much larger. A rank is late where
-- lateness_z exceeds what the largest of as many ranks exceeds by chance in 6 of 1,000 jobs.
--
-- Left out: collectives that some ranks lack, the first one of a rank in the capture, those whose ends do
-- not agree, and who sends to whom, which waits by design; the waits there are summed all the same.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib._straggler_signals(
    -- Runs to include; NULL means every run.
    runs
) AS TABLE
-- Columns:
--   run                 VARCHAR         Run name.
--   rank                INTEGER         Rank of the process.
--   run_ns              BIGINT [ns]     Length of the capture: median over the ranks.
--   collective_count    BIGINT [count]  Collectives that were looked at.
--   last_arrival_count  BIGINT [count]  Those in which it came last.
--   wait_ns             BIGINT [ns]     Its waits.
--   peer_count          BIGINT [count]  Ranks that it shares groups with.
--   peer_wait_ns        BIGINT [ns]     Their waits: median.
--   excess_ns           BIGINT [ns]     What it waits less than they.
--   wait_caused_ns      BIGINT [ns]     Waits of others for it, without what it had waited itself more than they before.
--   lead_kept           DOUBLE [1]      Share of its lateness that is left without its largest single event.
--   lateness_z          DOUBLE [1]      Its lateness in standard deviations of chance.
--   lateness_z_limit    DOUBLE [1]      What the largest of as many ranks exceeds by chance in 6 of 1,000 jobs.
--   trusted_share       DOUBLE [1]      Share of its collectives whose ends agree.
--   run_trusted_share   DOUBLE [1]      The same of the run.
WITH
    _meetings AS MATERIALIZED (
        SELECT
            m.run, m.rank, m.span, m.collective_id, m.channel_id, m.start_ns, m.end_ns, m.wait_ns, m.is_last, m.is_p2p,
            m.end_times_match AND NOT m.is_p2p AS is_used
        FROM matched_collectives AS m
        WHERE m.is_complete AND NOT m.is_startup AND lib.is_requested(runs, m.run)
    ),
    _coverage AS (
        SELECT
            m.run, m.rank,
            count_if(m.is_used) / nullif(count_if(NOT m.is_p2p), 0) AS trusted_share,
            sum(count_if(m.is_used)) OVER (PARTITION BY m.run) / nullif(sum(count_if(NOT m.is_p2p)) OVER (PARTITION BY m.run), 0)
                AS run_trusted_share
        FROM _meetings AS m
        GROUP BY m.run, m.rank
    ),
    _observed AS (
        SELECT k.run, median(k.dur)::BIGINT AS run_ns FROM ranks AS k WHERE lib.is_requested(runs, k.run) GROUP BY k.run
    ),
    _middles AS (
        SELECT m.run, m.collective_id, median(m.start_ns) AS start_ns
        FROM _meetings AS m
        WHERE m.is_used
        GROUP BY m.run, m.collective_id
    ),
    _lateness AS MATERIALIZED (
        SELECT
            m.run, m.rank, m.collective_id, m.channel_id, m.wait_ns, m.start_ns - d.start_ns AS late_ns,
            row_number() OVER (PARTITION BY m.run, m.rank ORDER BY m.end_ns, m.collective_id) - 1 AS position,
            count(*) OVER (PARTITION BY m.run, m.rank) AS n
        FROM _meetings AS m
        JOIN _middles AS d ON d.run = m.run AND d.collective_id = m.collective_id
        WHERE m.is_used
    ),
    _scales AS (
        SELECT
            l.run, l.channel_id,
            3 * median(abs(l.late_ns)) AS scale,
            3 * median(abs(l.late_ns)) / max(3 * median(abs(l.late_ns))) OVER (PARTITION BY l.run) AS weight
        FROM _lateness AS l
        WHERE l.late_ns <> 0
        GROUP BY l.run, l.channel_id
    ),
    -- In hundred thousandths: sums of whole numbers are the same on any number of threads.
    _scored AS MATERIALIZED (
        SELECT
            l.run, l.rank, l.collective_id, l.wait_ns, l.position, l.n,
            coalesce(sign(l.late_ns) * round(100000 * s.weight * ln(1 + abs(l.late_ns) / s.scale)), 0)::BIGINT AS score
        FROM _lateness AS l
        LEFT JOIN _scales AS s ON s.run = l.run AND s.channel_id = l.channel_id
    ),
    _means AS (
        SELECT s.run, s.collective_id, round(avg(s.score))::BIGINT AS score, round(avg(s.wait_ns))::BIGINT AS wait_ns
        FROM _scored AS s
        GROUP BY s.run, s.collective_id
    ),
    _centerd AS MATERIALIZED (
        SELECT
            s.run, s.rank, s.collective_id, s.score AS own_score, s.score - m.score AS score, m.wait_ns - s.wait_ns AS lead_ns,
            -- Eighths of the capture, or pairs where there are fewer than sixteen.
            (s.position * least(8, s.n // 2)) // s.n AS part
        FROM _scored AS s
        JOIN _means AS m ON m.run = s.run AND m.collective_id = s.collective_id
    ),
    _moments AS (
        SELECT
            c.run, c.collective_id,
            round(sum(c.score * c.score) / count(*))::BIGINT AS square,
            round(sum(c.score * c.score * c.score) / count(*))::BIGINT AS cube
        FROM _centerd AS c
        GROUP BY c.run, c.collective_id
    ),
    _totals AS MATERIALIZED (
        SELECT
            c.run, c.rank, count(*) AS n, sum(c.score)::BIGINT AS score, sum(m.square)::BIGINT AS square, sum(m.cube)::DOUBLE AS cube,
            round(avg(c.own_score))::BIGINT AS own_score,
            1 - max(greatest(0, c.lead_ns)) / nullif(sum(greatest(0, c.lead_ns)), 0) AS lead_kept
        FROM _centerd AS c
        JOIN _moments AS m ON m.run = c.run AND m.collective_id = c.collective_id
        GROUP BY c.run, c.rank
    ),
    _parts AS (
        SELECT
            c.run, c.rank, c.part,
            sum(c.own_score - t.own_score)::BIGINT AS score, sum((c.own_score - t.own_score) * (c.own_score - t.own_score)) AS square
        FROM _centerd AS c
        JOIN _totals AS t ON t.run = c.run AND t.rank = c.rank
        GROUP BY c.run, c.rank, c.part
    ),
    -- How much more the sums over parts vary than single scores do; of the usual rank, as a late one may have become so.
    _lasting AS (
        SELECT p.run, p.rank, count(*) AS n, sum(p.score::HUGEINT * p.score) / nullif(sum(p.square), 0) * count(*) / nullif(count(*) - 1, 0) AS ratio
        FROM _parts AS p
        GROUP BY p.run, p.rank
    ),
    _factors AS (
        SELECT
            l.run, count(*) AS rank_count,
            CASE
                WHEN median(l.ratio) > 1 + 3 * sqrt(2 / (greatest(1, median(l.n) - 1) * greatest(1, count(*) - 1))) THEN median(l.ratio)
                ELSE 1
            END AS factor
        FROM _lasting AS l
        GROUP BY l.run
    ),
    _tested AS (
        SELECT
            t.run, t.rank, t.n, t.lead_kept, f.rank_count,
            t.score / nullif(sqrt(t.square * f.factor), 0) AS z,
            t.cube * sqrt(f.factor) / nullif(t.square * sqrt(t.square), 0) AS skew,
            -- The upper tail of the normal distribution, by a formula that is right to 0.0005.
            sqrt(-2 * ln(0.006 / f.rank_count)) AS t
        FROM _totals AS t
        JOIN _factors AS f ON f.run = t.run
    ),
    -- Who waits for whom: all waits, those between sender and receiver too.
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
    _blame AS (
        SELECT
            l.run, l.rank,
            count(DISTINCT l.collective_id) AS last_arrival_count,
            sum(greatest(0, s.wait_ns - greatest(0, l.elsewhere - s.elsewhere)))::BIGINT AS wait_caused_ns
        FROM _since AS l
        JOIN _since AS s ON s.run = l.run AND s.collective_id = l.collective_id AND NOT s.is_last
        WHERE l.is_last AND l.is_used
        GROUP BY l.run, l.rank
    ),
    _waits AS MATERIALIZED (
        SELECT m.run, m.rank, sum(m.wait_ns)::BIGINT AS wait_ns
        FROM _meetings AS m
        WHERE m.is_used OR m.is_p2p
        GROUP BY m.run, m.rank
    ),
    _groups AS (
        SELECT DISTINCT m.run, m.channel_id, m.rank FROM _meetings AS m WHERE m.is_used
    ),
    _pairs AS (
        SELECT DISTINCT a.run, a.rank, b.rank AS peer
        FROM _groups AS a
        JOIN _groups AS b ON b.run = a.run AND b.channel_id = a.channel_id AND b.rank <> a.rank
    ),
    _peers AS (
        SELECT p.run, p.rank, median(w.wait_ns)::BIGINT AS peer_wait_ns, count(*) AS peer_count
        FROM _pairs AS p
        JOIN _waits AS w ON w.run = p.run AND w.rank = p.peer
        GROUP BY p.run, p.rank
    )
SELECT
    t.run,
    t.rank,
    o.run_ns,
    t.n AS collective_count,
    coalesce(b.last_arrival_count, 0) AS last_arrival_count,
    w.wait_ns,
    p.peer_count,
    p.peer_wait_ns,
    p.peer_wait_ns - w.wait_ns AS excess_ns,
    coalesce(b.wait_caused_ns, 0) AS wait_caused_ns,
    t.lead_kept,
    CASE
        WHEN t.z > 0 AND t.skew > 0.001 THEN 6 / t.skew * (cbrt(t.skew * t.z / 2 + 1) - 1) + t.skew / 6
        ELSE t.z
    END AS lateness_z,
    t.t - (2.515517 + 0.802853 * t.t + 0.010328 * t.t * t.t) / (1 + 1.432788 * t.t + 0.189269 * t.t * t.t + 0.001308 * t.t * t.t * t.t)
        AS lateness_z_limit,
    c.trusted_share,
    c.run_trusted_share::DOUBLE AS run_trusted_share
FROM _tested AS t
JOIN _observed AS o ON o.run = t.run
JOIN _waits AS w ON w.run = t.run AND w.rank = t.rank
JOIN _coverage AS c ON c.run = t.run AND c.rank = t.rank
JOIN _peers AS p ON p.run = t.run AND p.rank = t.rank
LEFT JOIN _blame AS b ON b.run = t.run AND b.rank = t.rank
