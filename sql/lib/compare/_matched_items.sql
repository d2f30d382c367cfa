-- Match the items of a channel to form collectives, by sequence number (Seq) if it is consistent, otherwise by
-- position and shift.
--
-- Seq is consistent in a channel if every item has a Seq, and if Seq never decreases on a rank. In addition, each
-- number must occur equally often on all ranks that have it, on kernels of one function. Finally, Seq must agree with
-- 98 % of the matches by position, or yield no larger spread of end times than these matches. The spread is measured
-- only on the ranks where Seq and position disagree, because the other ranks would only add noise. The spread is a
-- mean, because in a regular sequence, a Seq that is off by one misses only by microseconds, which a median does not
-- show. A difference counts at most as much as the median gap, so one late end does not decide. Matches by position are ignored if they are fewer than 90 % of the matches by Seq, because a large shift
-- leaves a few matches that fit by chance. Items with the same number on one rank are distinguished by their order.
CREATE OR REPLACE MACRO lib._matched_items(
    -- Name of a relation with lane_id, rank, ref_rank, position, ordinal (position in the reference, after the
    -- shift), end_ts, gap (to the next end), seq and shape_id.
    shifted_items,
    -- Name of a relation with the columns of lib._repaired_positions.
    repaired_items
) AS TABLE
-- Columns:
--   lane_id   BIGINT      Channel number, unique across runs.
--   rank      INTEGER     Rank of the process.
--   position  BIGINT [1]  Position in the sequence of the rank.
--   number    BIGINT [1]  Number that, together with nth, identifies the collective in its channel.
--   nth       BIGINT [1]  Distinguishes items with the same number.
--   method    VARCHAR     seq, ordinal, or time if positions were repaired.
WITH
    _numbered AS MATERIALIZED (
        SELECT
            i.lane_id, i.rank, i.position, i.end_ts, i.shape_id, i.seq, i.ref_rank,
            coalesce(p.ordinal, i.ordinal) AS ordinal,
            coalesce(p.nth, 1) AS ordinal_nth,
            p.position IS NOT NULL AS is_repaired,
            CASE WHEN i.seq IS NOT NULL THEN row_number() OVER (PARTITION BY i.lane_id, i.rank, i.seq ORDER BY i.position) END AS seq_nth
        FROM query_table(shifted_items) AS i
        LEFT JOIN query_table(repaired_items) AS p ON p.lane_id = i.lane_id AND p.rank = i.rank AND p.position = i.position
    ),
    _numbers AS (
        SELECT n.lane_id, n.seq, n.rank, count(*) AS n, min(n.shape_id) AS low_shape, max(n.shape_id) AS high_shape
        FROM _numbered AS n
        WHERE n.seq IS NOT NULL
        GROUP BY n.lane_id, n.seq, n.rank
    ),
    _uneven AS (
        SELECT n.lane_id, n.seq
        FROM _numbers AS n
        GROUP BY n.lane_id, n.seq
        HAVING max(n.n) > min(n.n) OR min(n.low_shape) <> max(n.high_shape)
    ),
    _fell AS (
        SELECT n.lane_id, n.seq, n.seq < lag(n.seq) OVER (PARTITION BY n.lane_id, n.rank ORDER BY n.position) AS fell
        FROM _numbered AS n
    ),
    _usable AS (
        SELECT f.lane_id
        FROM _fell AS f
        GROUP BY f.lane_id
        HAVING NOT bool_or(f.seq IS NULL) AND NOT coalesce(bool_or(f.fell), false) AND f.lane_id NOT IN (SELECT u.lane_id FROM _uneven AS u)
    ),
    _reference AS MATERIALIZED (
        SELECT n.lane_id, n.ordinal, n.ordinal_nth, n.seq, n.seq_nth, n.end_ts
        FROM _numbered AS n
        JOIN _usable AS u ON u.lane_id = n.lane_id
        WHERE n.rank = n.ref_rank
    ),
    _by_order AS MATERIALIZED (
        SELECT n.lane_id, n.rank, n.end_ts - r.end_ts AS difference, n.seq = r.seq AND n.seq_nth = r.seq_nth AS agrees
        FROM _numbered AS n
        JOIN _reference AS r ON r.lane_id = n.lane_id AND r.ordinal = n.ordinal AND r.ordinal_nth = n.ordinal_nth
        WHERE n.rank <> n.ref_rank
    ),
    _agreement AS (
        SELECT o.lane_id, count_if(o.agrees) / count(*) AS agreement
        FROM _by_order AS o
        GROUP BY o.lane_id
    ),
    _disputed AS MATERIALIZED (
        SELECT o.lane_id, o.rank
        FROM _by_order AS o
        JOIN _agreement AS a ON a.lane_id = o.lane_id AND a.agreement < 0.98
        GROUP BY o.lane_id, o.rank
        HAVING NOT bool_and(o.agrees)
    ),
    _both_ways AS MATERIALIZED (
        SELECT o.lane_id, o.rank, 'ordinal' AS method, o.difference
        FROM _by_order AS o
        JOIN _disputed AS d ON d.lane_id = o.lane_id AND d.rank = o.rank
        UNION ALL
        SELECT n.lane_id, n.rank, 'seq', n.end_ts - r.end_ts
        FROM _numbered AS n
        JOIN _disputed AS d ON d.lane_id = n.lane_id AND d.rank = n.rank
        JOIN _reference AS r ON r.lane_id = n.lane_id AND r.seq = n.seq AND r.seq_nth = n.seq_nth
        WHERE n.rank <> n.ref_rank
    ),
    _middles AS (
        SELECT b.lane_id, b.rank, b.method, median(b.difference) AS middle
        FROM _both_ways AS b
        GROUP BY b.lane_id, b.rank, b.method
    ),
    _usual_gaps AS (
        SELECT i.lane_id, median(i.gap) AS gap
        FROM query_table(shifted_items) AS i
        WHERE i.rank = i.ref_rank
        GROUP BY i.lane_id
    ),
    _misfits AS (
        SELECT
            b.lane_id,
            10 * count_if(b.method = 'ordinal') < 9 * count_if(b.method = 'seq') AS is_poor,
            avg(least(g.gap, abs(b.difference - m.middle))::BIGINT) FILTER (b.method = 'seq') AS by_seq,
            avg(least(g.gap, abs(b.difference - m.middle))::BIGINT) FILTER (b.method = 'ordinal') AS by_order
        FROM _both_ways AS b
        JOIN _middles AS m ON m.lane_id = b.lane_id AND m.rank = b.rank AND m.method = b.method
        JOIN _usual_gaps AS g ON g.lane_id = b.lane_id
        GROUP BY b.lane_id
    ),
    _by_seq AS (
        SELECT u.lane_id
        FROM _usable AS u
        LEFT JOIN _agreement AS a ON a.lane_id = u.lane_id
        LEFT JOIN _misfits AS m ON m.lane_id = u.lane_id
        WHERE coalesce(a.agreement >= 0.98 OR m.is_poor OR m.by_seq <= m.by_order, true)
    )
SELECT
    n.lane_id, n.rank, n.position,
    CASE WHEN s.lane_id IS NOT NULL THEN n.seq ELSE n.ordinal END AS number,
    CASE WHEN s.lane_id IS NOT NULL THEN n.seq_nth ELSE n.ordinal_nth END AS nth,
    CASE WHEN s.lane_id IS NOT NULL THEN 'seq' WHEN n.is_repaired THEN 'time' ELSE 'ordinal' END AS method
FROM _numbered AS n
LEFT JOIN _by_seq AS s ON s.lane_id = n.lane_id
