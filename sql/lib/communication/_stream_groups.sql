-- Groups of ranks on a stream without metadata, inferred from the ranks that leave collectives together.
--
-- All ranks of a group leave a collective together, so the time between successive ends is equal on all of them,
-- whatever the offsets of their clocks. The distance between two ranks is the median difference of these times, at the
-- shift of up to four positions that fits best, because captures start at different times. All ranks of a stream form
-- one group, unless a division explains the ends clearly better. In such a division, every distance between groups is
-- at least four times every distance inside a group, at least four times the resolution of the recorded times, and at
-- least 0.1 % of the median time between ends, because clocks drift by up to 0.02 %. If the division leaves a rank
-- alone, the last limit is 25 %, because a single rank may end late for other reasons. Of several divisions, the one
-- with the most groups is used. At most 64 ranks are compared, pair by pair, in their first 96 collectives.
CREATE OR REPLACE MACRO lib._stream_groups(
    -- Name of a relation with the columns of lib._collective_calls.
    call_rows,
    -- Name of a relation with the columns of lib._collective_channels up to channel: labels of kernels whose group is
    -- unknown.
    stream_rows
) AS TABLE
-- Columns:
--   run         VARCHAR  Run name.
--   span        INTEGER  Recording of the rank.
--   channel     VARCHAR  Name of the stream.
--   rank        INTEGER  Rank of the process, on a stream that is divided.
--   first_id    INTEGER  Lowest rank of the group that the rank belongs to.
WITH
    _ends AS (
        SELECT
            l.run, l.span, l.channel, l.rank, c.ts + c.dur AS end_ts,
            row_number() OVER (PARTITION BY l.run, l.span, l.channel, l.rank ORDER BY c.ts, c.event_id) AS position
        FROM query_table(call_rows) AS c
        JOIN query_table(stream_rows) AS l ON l.label_id = c.label_id
    ),
    _gaps AS MATERIALIZED (
        SELECT
            e.run, e.span, e.channel, e.rank, e.position,
            lead(e.end_ts) OVER (PARTITION BY e.run, e.span, e.channel, e.rank ORDER BY e.position) - e.end_ts AS gap
        FROM _ends AS e
        WHERE e.position <= 97
        QUALIFY gap IS NOT NULL
    ),
    -- All times are multiples of the resolution: the greatest common divisor is 1000 ns if traces record microseconds.
    _comparable AS MATERIALIZED (
        SELECT
            g.run, g.span, g.channel, median(g.gap) AS usual_gap,
            greatest(1, list_reduce(list(abs(g.gap)), lambda a, b: gcd(a, b))) AS tick
        FROM _gaps AS g
        GROUP BY g.run, g.span, g.channel
        HAVING count(DISTINCT g.rank) BETWEEN 3 AND 64
    ),
    _shifted AS (
        SELECT
            a.run, a.span, a.channel, a.rank, b.rank AS other, b.position - a.position AS shift,
            count(*) AS n, median(abs(a.gap - b.gap)) AS distance
        FROM _comparable AS k
        JOIN _gaps AS a ON a.run = k.run AND a.span = k.span AND a.channel = k.channel
        JOIN _gaps AS b
            ON b.run = a.run AND b.span = a.span AND b.channel = a.channel
            AND b.rank > a.rank AND b.position BETWEEN a.position - 4 AND a.position + 4
        GROUP BY a.run, a.span, a.channel, a.rank, b.rank, b.position - a.position
        HAVING count(*) >= 4
    ),
    _pairs AS MATERIALIZED (
        SELECT s.run, s.span, s.channel, s.rank, s.other, min(s.distance) AS distance
        FROM _shifted AS s
        GROUP BY s.run, s.span, s.channel, s.rank, s.other
    ),
    -- Distances at which ranks may be divided, because the next distance is much larger.
    _cuts AS MATERIALIZED (
        SELECT
            d.run, d.span, d.channel, d.distance,
            d.next_distance >= 0.25 * k.usual_gap AS is_far
        FROM (
            SELECT
                p.run, p.span, p.channel, p.distance,
                lead(p.distance) OVER (PARTITION BY p.run, p.span, p.channel ORDER BY p.distance) AS next_distance
            FROM _pairs AS p
        ) AS d
        JOIN _comparable AS k ON k.run = d.run AND k.span = d.span AND k.channel = d.channel
        WHERE d.next_distance >= 4 * greatest(d.distance, k.tick) AND d.next_distance >= 0.001 * k.usual_gap
    ),
    _near AS (
        SELECT c.run, c.span, c.channel, c.distance, p.rank, p.other
        FROM _cuts AS c
        JOIN _pairs AS p ON p.run = c.run AND p.span = c.span AND p.channel = c.channel AND p.distance <= c.distance
    ),
    _members AS MATERIALIZED (
        SELECT
            c.run, c.span, c.channel, c.distance, r.rank, least(r.rank, min(n.other)) AS first_id, count(n.other) AS near_count
        FROM _cuts AS c
        JOIN (SELECT DISTINCT g.run, g.span, g.channel, g.rank FROM _gaps AS g) AS r ON r.run = c.run AND r.span = c.span AND r.channel = c.channel
        LEFT JOIN (
            SELECT a.run, a.span, a.channel, a.distance, a.rank, a.other FROM _near AS a
            UNION ALL
            SELECT b.run, b.span, b.channel, b.distance, b.other, b.rank FROM _near AS b
        ) AS n ON n.run = c.run AND n.span = c.span AND n.channel = c.channel AND n.distance = c.distance AND n.rank = r.rank
        GROUP BY c.run, c.span, c.channel, c.distance, r.rank
    ),
    -- A division is consistent if each rank is near all ranks of its group, and only near these.
    _groups AS (
        SELECT m.run, m.span, m.channel, m.distance, count(*) AS n, bool_and(m.near_count = k.n - 1) AS is_whole
        FROM _members AS m
        JOIN (
            SELECT o.run, o.span, o.channel, o.distance, o.first_id, count(*) AS n
            FROM _members AS o
            GROUP BY o.run, o.span, o.channel, o.distance, o.first_id
        ) AS k ON k.run = m.run AND k.span = m.span AND k.channel = m.channel AND k.distance = m.distance AND k.first_id = m.first_id
        GROUP BY m.run, m.span, m.channel, m.distance, m.first_id
    ),
    _divisions AS (
        SELECT c.run, c.span, c.channel, c.distance
        FROM _groups AS g
        JOIN _cuts AS c ON c.run = g.run AND c.span = g.span AND c.channel = g.channel AND c.distance = g.distance
        GROUP BY c.run, c.span, c.channel, c.distance
        HAVING bool_and(g.is_whole) AND (min(g.n) > 1 OR bool_and(c.is_far))
        QUALIFY row_number() OVER (PARTITION BY c.run, c.span, c.channel ORDER BY c.distance) = 1
    )
SELECT m.run, m.span, m.channel, m.rank, m.first_id
FROM _divisions AS d
JOIN _members AS m ON m.run = d.run AND m.span = d.span AND m.channel = d.channel AND m.distance = d.distance
