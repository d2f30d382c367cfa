-- Channel of each communication kernel; all ranks of a channel run its operations in the same order.
--
-- A channel is a set of ranks, regardless of the group's name, or the two ranks of a point-to-point operation. If the
-- ranks are unknown, the channel is the name of the group or, without a name, the n-th communication stream of the
-- rank. A kernel without metadata (launched before the capture began) belongs to the group of its stream, if the
-- stream has only one group. A rank list that the profiler truncated ("[0, 1, ...]") is completed from the metadata
-- of the trace. If the metadata does not contain it, the list is completed from the ranks that report the group, if
-- their number equals the group size, or by continuing the stride of the recorded ranks. Groups with the same ranks
-- are distinguished by name if several ranks use the name, otherwise by the order of names on a rank. If roles number
-- their ranks separately, equal names and streams of different roles are different channels. Channels are computed
-- once per distinct label, not per kernel.
CREATE OR REPLACE MACRO lib._collective_channels(
    -- Name of a relation with the columns of lib._collective_calls.
    call_rows
) AS TABLE
-- Columns:
--   run           VARCHAR    Run name.
--   rank          INTEGER    Rank of the process.
--   span          INTEGER    Recording of the rank.
--   label_id      UBIGINT    Number of the distinct group label in lib._collective_calls.
--   channel_id    BIGINT     Number of the channel, from 1 in each run.
--   channel       VARCHAR    Ranks of the channel, pair of ranks, group name, or stream number.
--   full_pg_name  VARCHAR    Process group name; taken from the stream if the kernel has none.
--   member_ranks  INTEGER[]  All ranks of the group; NULL if unknown.
--   is_p2p        BOOLEAN    Whether the label belongs to a point-to-point operation.
--   is_known      BOOLEAN    Whether the ranks are known.
WITH
    _labels AS (
        SELECT
            c.label_id, any_value(c.run) AS run, any_value(c.rank) AS rank, any_value(c.span) AS span, any_value(c.on_host) AS on_host, any_value(c.device) AS device, any_value(c.stream) AS stream,
            any_value(c.pg_name) AS pg_name, any_value(c.pg_ranks) AS pg_ranks, any_value(c.group_size) AS group_size,
            any_value(c.src_rank) AS src_rank, any_value(c.dst_rank) AS dst_rank,
            any_value(CASE WHEN c.collective IN ('send', 'recv') THEN c.collective END) AS collective
        FROM query_table(call_rows) AS c
        GROUP BY c.label_id
    ),
    _streams AS (
        SELECT
            l.run, l.rank, l.span, l.device, l.stream,
            count(DISTINCT (l.pg_name, l.pg_ranks)) FILTER (l.pg_name IS NOT NULL OR l.pg_ranks IS NOT NULL) = 1 AS is_one,
            any_value(l.pg_name) AS pg_name, any_value(l.pg_ranks) AS pg_ranks, max(l.group_size) AS group_size,
            dense_rank() OVER (PARTITION BY l.run, l.rank, l.span, l.device ORDER BY l.stream) AS lane
        FROM _labels AS l
        GROUP BY l.run, l.rank, l.span, l.device, l.stream
    ),
    _filled AS (
        SELECT
            l.*, s.lane,
            CASE WHEN l.pg_name IS NULL AND l.pg_ranks IS NULL AND s.is_one THEN s.pg_name ELSE l.pg_name END AS full_name,
            CASE WHEN l.pg_name IS NULL AND l.pg_ranks IS NULL AND s.is_one THEN s.pg_ranks ELSE l.pg_ranks END AS full_text,
            CASE WHEN l.pg_name IS NULL AND l.pg_ranks IS NULL AND s.is_one THEN s.group_size ELSE l.group_size END AS full_size
        FROM _labels AS l
        JOIN _streams AS s
            ON s.run = l.run AND s.rank = l.rank AND s.span = l.span AND s.device IS NOT DISTINCT FROM l.device AND s.stream IS NOT DISTINCT FROM l.stream
    ),
    _stated AS (
        SELECT p.run, p.pg_name, p.pg_size, min(p.pg_ranks) AS pg_ranks
        FROM process_groups AS p
        WHERE p.pg_ranks IS NOT NULL AND NOT contains(p.pg_ranks, '...')
        GROUP BY p.run, p.pg_name, p.pg_size
        -- A name that stands for different groups on different ranks is ambiguous.
        HAVING count(DISTINCT p.pg_ranks) = 1
    ),
    _texts AS (
        SELECT
            f.run, f.span, f.full_name, f.full_text, f.full_size,
            list_transform(regexp_extract_all(f.full_text, '\d+'), lambda x: TRY_CAST(x AS INTEGER)) AS head,
            list_transform(regexp_extract_all(any_value(s.pg_ranks), '\d+'), lambda x: TRY_CAST(x AS INTEGER)) AS stated,
            list_sort(list(DISTINCT f.rank)) AS reporters
        FROM _filled AS f
        LEFT JOIN _stated AS s ON s.run = f.run AND s.pg_name = f.full_name AND (f.full_size IS NULL OR s.pg_size = f.full_size)
        WHERE f.full_text IS NOT NULL OR f.full_name IS NOT NULL
        GROUP BY ALL
    ),
    _completed AS (
        SELECT
            t.*,
            CASE
                WHEN len(t.head) > 0 AND NOT contains(t.full_text, '...') THEN t.head
                WHEN len(t.stated) > 0 THEN t.stated
                WHEN len(t.reporters) = t.full_size THEN t.reporters
                WHEN t.full_size IS NOT NULL AND len(t.head) >= 2
                    THEN list_transform(range(t.full_size), lambda k: (t.head[1] + k * (t.head[2] - t.head[1]))::INTEGER)
                WHEN len(t.head) > 0 THEN list_sort(list_distinct(list_concat(t.head, t.reporters)))
            END AS members
        FROM _texts AS t
    ),
    -- Sender and receiver: the profiler may record both ranks or only the partner, and may number ranks within the
    -- group.
    _ends AS (
        SELECT
            f.*, m.members,
            CASE WHEN f.src_rank >= 0 THEN f.src_rank WHEN f.collective = 'send' AND f.dst_rank >= 0 THEN f.rank END AS src,
            CASE WHEN f.dst_rank >= 0 THEN f.dst_rank WHEN f.collective = 'recv' AND f.src_rank >= 0 THEN f.rank END AS dst
        FROM _filled AS f
        LEFT JOIN _completed AS m
            ON m.run = f.run AND m.span = f.span AND m.full_name IS NOT DISTINCT FROM f.full_name
            AND m.full_text IS NOT DISTINCT FROM f.full_text AND m.full_size IS NOT DISTINCT FROM f.full_size
    ),
    _pairs AS (
        SELECT
            e.*,
            CASE
                WHEN e.collective IS NULL OR e.src IS NULL OR e.dst IS NULL OR e.src = e.dst THEN NULL
                WHEN e.rank IN (e.src, e.dst) THEN [e.src::INTEGER, e.dst::INTEGER]
                WHEN e.rank IN (e.members[e.src + 1], e.members[e.dst + 1]) THEN [e.members[e.src + 1], e.members[e.dst + 1]]
            END AS pair
        FROM _ends AS e
    ),
    _keyed AS MATERIALIZED (
        SELECT
            p.*,
            CASE
                WHEN p.pair IS NOT NULL THEN 'p2p ' || p.pair[1] || '>' || p.pair[2]
                -- The partner is not recorded, so nothing can be matched.
                WHEN p.collective IS NOT NULL AND coalesce(len(p.members), 0) <> 2 THEN 'p2p of rank ' || p.rank
                WHEN p.members IS NOT NULL THEN p.members::VARCHAR
                WHEN p.full_name IS NOT NULL THEN 'group ' || p.full_name || CASE WHEN w.first_rank > 0 THEN ' from rank ' || w.first_rank ELSE '' END
                -- On the host, no stream defines an order.
                WHEN p.on_host THEN 'host of rank ' || p.rank
                ELSE 'stream ' || p.lane || CASE WHEN w.first_rank > 0 THEN ' from rank ' || w.first_rank ELSE '' END
            END AS channel
        FROM _pairs AS p
        LEFT JOIN ranks AS w ON w.run = p.run AND w.rank = p.rank
    ),
    _unknown AS MATERIALIZED (
        SELECT k.run, k.span, k.rank, k.label_id, k.channel FROM _keyed AS k WHERE starts_with(k.channel, 'stream ')
    ),
    _regrouped AS (
        SELECT k.* EXCLUDE (channel), k.channel || CASE WHEN g.first_id > 0 THEN ' of rank ' || g.first_id ELSE '' END AS channel
        FROM _keyed AS k
        LEFT JOIN lib._stream_groups(call_rows, '_unknown') AS g
            ON g.run = k.run AND g.span = k.span AND g.channel = k.channel AND g.rank = k.rank
    ),
    _shared AS (
        SELECT k.run, k.span, k.channel, k.full_name, count(DISTINCT k.rank) >= 2 AS is_shared
        FROM _regrouped AS k
        GROUP BY k.run, k.span, k.channel, k.full_name
    ),
    _twins AS (
        SELECT
            k.*,
            CASE WHEN s.is_shared THEN k.full_name ELSE (
                dense_rank() OVER (PARTITION BY k.run, k.rank, k.span, k.channel, s.is_shared ORDER BY try_cast(k.full_name AS BIGINT), k.full_name)
            )::VARCHAR END AS twin,
            coalesce(s.is_shared, false) AS is_shared
        FROM _regrouped AS k
        JOIN _shared AS s ON s.run = k.run AND s.span = k.span AND s.channel = k.channel AND s.full_name IS NOT DISTINCT FROM k.full_name
    )
SELECT
    t.run, t.rank, t.span, t.label_id,
    dense_rank() OVER (PARTITION BY t.run ORDER BY t.channel, t.is_shared, t.twin) AS channel_id,
    t.channel,
    t.full_name AS full_pg_name,
    coalesce(t.pair, t.members) AS member_ranks,
    t.collective IS NOT NULL AS is_p2p,
    t.pair IS NOT NULL OR t.members IS NOT NULL AS is_known
FROM _twins AS t
