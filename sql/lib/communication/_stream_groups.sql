-- Groups of ranks on a stream without metadata, inferred from the ranks that leave collectives together.
--
-- All ranks of a group leave a collective together, so the time between successive ends is equal on all of them,
-- regardless of clock offsets. Two ranks belong to one group if that time differs by at most 20 us in 95 % of their
-- collectives; on one host, the end times themselves are compared. A shift of up to four positions is allowed,
-- because captures start at different times. Groups that always stay within 20 us of each other are merged, which
-- changes waits by at most 20 us. If all ranks find partners within 2 us, only such partners form groups. At most 64
-- ranks are compared, pair by pair, in their first 96 collectives. If less than half of the ranks find partners, the
-- stream is not divided.
--
-- Status: experimental
-- Since: 0.1
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
--   rank        INTEGER  Rank of the process.
--   first_id    INTEGER  Lowest rank of the group that the rank belongs to.
WITH RECURSIVE
    _ends AS (
        SELECT
            l.run, l.span, l.channel, l.rank, c.ts + c.dur AS end_ts, k.host_name,
            row_number() OVER (PARTITION BY l.run, l.span, l.channel, l.rank ORDER BY c.ts, c.event_id) AS position
        FROM query_table(call_rows) AS c
        JOIN query_table(stream_rows) AS l ON l.label_id = c.label_id
        JOIN ranks AS k ON k.run = l.run AND k.rank = l.rank
    ),
    _gaps AS MATERIALIZED (
        SELECT
            e.run, e.span, e.channel, e.rank, e.position, e.end_ts, e.host_name,
            lead(e.end_ts) OVER (PARTITION BY e.run, e.span, e.channel, e.rank ORDER BY e.position) - e.end_ts AS gap
        FROM _ends AS e
        WHERE e.position <= 97
        QUALIFY gap IS NOT NULL
    ),
    _comparable AS (
        SELECT g.run, g.span, g.channel, count(DISTINCT g.rank) AS rank_count FROM _gaps AS g GROUP BY g.run, g.span, g.channel HAVING count(DISTINCT g.rank) BETWEEN 3 AND 64
    ),
    _fits AS MATERIALIZED (
        SELECT s.run, s.span, s.channel, s.rank, s.other, max(s.close) >= 0.95 AS is_close
        FROM (
            SELECT
                a.run, a.span, a.channel, a.rank, b.rank AS other, b.position - a.position AS shift,
                count(*) AS n,
                count_if(CASE WHEN a.host_name = b.host_name THEN abs(a.end_ts - b.end_ts) ELSE abs(a.gap - b.gap) END <= 20000) / count(*) AS same,
                count_if(CASE WHEN a.host_name = b.host_name THEN abs(a.end_ts - b.end_ts) ELSE abs(a.gap - b.gap) END <= 2000) / count(*) AS close
            FROM _comparable AS k
            JOIN _gaps AS a ON a.run = k.run AND a.span = k.span AND a.channel = k.channel
            JOIN _gaps AS b
                ON b.run = a.run AND b.span = a.span AND b.channel = a.channel
                AND b.rank > a.rank AND b.position BETWEEN a.position - 4 AND a.position + 4
            GROUP BY a.run, a.span, a.channel, a.rank, b.rank, b.position - a.position
        ) AS s
        WHERE s.n >= 4 AND s.same >= 0.95
        GROUP BY s.run, s.span, s.channel, s.rank, s.other
    ),
    _ends_of_fits AS (
        SELECT f.run, f.span, f.channel, unnest([f.rank, f.other]) AS rank, f.is_close FROM _fits AS f
    ),
    _close_ranks AS (
        SELECT e.run, e.span, e.channel, count(DISTINCT e.rank) FILTER (e.is_close) AS n FROM _ends_of_fits AS e GROUP BY e.run, e.span, e.channel
    ),
    _pairs AS MATERIALIZED (
        SELECT f.run, f.span, f.channel, f.rank, f.other
        FROM _fits AS f
        JOIN _close_ranks AS c ON c.run = f.run AND c.span = f.span AND c.channel = f.channel
        JOIN _comparable AS k ON k.run = f.run AND k.span = f.span AND k.channel = f.channel
        WHERE f.is_close OR c.n < k.rank_count
    ),
    _links AS MATERIALIZED (
        SELECT p.run, p.span, p.channel, p.rank, p.other FROM _pairs AS p
        UNION ALL
        SELECT p.run, p.span, p.channel, p.other, p.rank FROM _pairs AS p
    ),
    _joined(run, span, channel, rank, first_id) USING KEY (run, span, channel, rank) AS (
        SELECT l.run, l.span, l.channel, l.rank, least(l.rank, min(l.other)) FROM _links AS l GROUP BY l.run, l.span, l.channel, l.rank
        UNION
        (
            SELECT l.run, l.span, l.channel, l.rank, min(j.first_id)
            FROM _joined AS j
            JOIN _links AS l ON l.run = j.run AND l.span = j.span AND l.channel = j.channel AND l.other = j.rank
            JOIN recurring._joined AS v ON v.run = l.run AND v.span = l.span AND v.channel = l.channel AND v.rank = l.rank
            WHERE j.first_id < v.first_id
            GROUP BY l.run, l.span, l.channel, l.rank
        )
    ),
    _members AS (
        SELECT g.run, g.span, g.channel, g.rank, coalesce(any_value(j.first_id), g.rank) AS first_id, any_value(j.first_id) IS NOT NULL AS has_partner
        FROM _gaps AS g
        LEFT JOIN _joined AS j ON j.run = g.run AND j.span = g.span AND j.channel = g.channel AND j.rank = g.rank
        GROUP BY g.run, g.span, g.channel, g.rank
    )
SELECT m.run, m.span, m.channel, m.rank, m.first_id
FROM _members AS m
QUALIFY 2 * count_if(m.has_partner) OVER (PARTITION BY m.run, m.span, m.channel) >= count(*) OVER (PARTITION BY m.run, m.span, m.channel)
