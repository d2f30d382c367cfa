-- Process groups of communication kernels and their kind of parallelism, with one row per rank, channel of
-- matched_collectives and recorded group name.
--
-- A group is a channel of collectives; sends and receives belong to the group whose name they carry. The kind comes
-- from the layout of the job if one is given, otherwise from the description. In a layout, the first dimension is
-- innermost: with tp2,dp4, ranks 0 and 1 split a layer, and ranks 0, 2, 4 and 6 reduce gradients. A group along
-- several dimensions is named after all of them, as in tp+dp.
CREATE OR REPLACE MACRO lib.group_labels(
    runs,
    -- Parallel dimensions of the job and their sizes, innermost first, as in tp2,dp4; NULL: taken from the group
    -- descriptions.
    layout
) AS TABLE
-- Columns:
--   run          VARCHAR         Run name.
--   rank         INTEGER         Rank of the process.
--   channel_id   BIGINT          Number of the channel of the kernels.
--   label_name   VARCHAR         Recorded process group name of the kernels; NULL if not recorded.
--   group_id     BIGINT          Number of the group on its rank.
--   group_name   VARCHAR         Process group name.
--   group_desc   VARCHAR         Process group description.
--   group_ranks  VARCHAR         Ranks of the group as JSON, or as recorded; NULL if unknown.
--   group_count  BIGINT [count]  Number of ranks in the group; if not recorded, number of ranks whose traces contain the group.
--   group_kind   VARCHAR         Kind of parallelism: dp, tp, pp, ep, cp, mp or several kinds, as in tp+dp; NULL if unknown.
--   kind_source  VARCHAR         layout or description; NULL if the kind is unknown.
WITH
    _labels AS MATERIALIZED (
        SELECT
            m.run, m.rank, m.channel_id, m.pg_name AS label_name, bool_or(m.is_p2p) AS is_p2p, max(m.member_ranks) AS member_ranks,
            max(m.pg_desc) AS pg_desc, max(m.pg_ranks) AS pg_ranks, max(m.group_size) AS group_size, max(m.rank_count) AS rank_count
        FROM matched_collectives AS m
        WHERE lib.is_requested(runs, m.run)
        GROUP BY m.run, m.rank, m.channel_id, m.pg_name
    ),
    _homes AS (
        SELECT l.run, l.rank, l.label_name, min(l.channel_id) AS home_id
        FROM _labels AS l
        WHERE NOT l.is_p2p AND l.label_name IS NOT NULL
        GROUP BY l.run, l.rank, l.label_name
    ),
    _numbered AS (
        SELECT
            l.*,
            dense_rank() OVER (
                PARTITION BY l.run, l.rank
                ORDER BY CASE WHEN l.is_p2p THEN h.home_id ELSE l.channel_id END NULLS LAST, CASE WHEN l.is_p2p THEN l.label_name END
            ) AS group_id
        FROM _labels AS l
        LEFT JOIN _homes AS h ON h.run = l.run AND h.rank = l.rank AND h.label_name = l.label_name
    ),
    _groups AS MATERIALIZED (
        SELECT
            n.run, n.rank, n.group_id, max(n.label_name) AS group_name, max(n.pg_desc) AS group_desc,
            coalesce(max(n.member_ranks) FILTER (NOT n.is_p2p), max(n.pg_ranks)) AS group_ranks,
            coalesce(max(n.group_size), max(n.rank_count)) AS group_count
        FROM _numbered AS n
        GROUP BY n.run, n.rank, n.group_id
    ),
    _dimensions AS (
        SELECT
            d.position,
            lower(regexp_extract(d.text, '^\s*([A-Za-z]+)\s*=?\s*[0-9]+\s*$', 1)) AS kind,
            CASE
                WHEN regexp_matches(d.text, '^\s*[A-Za-z]+\s*=?\s*0*[1-9][0-9]{0,6}\s*$') THEN regexp_extract(d.text, '[0-9]+')::BIGINT
                ELSE error('layout: "' || d.text || '" is no dimension with a size; write for example tp2,dp4')::BIGINT
            END AS size
        FROM (
            SELECT unnest(string_split(layout, ',')) AS text, generate_subscripts(string_split(layout, ','), 1) AS position
        ) AS d
    ),
    _strides AS (
        SELECT
            d.position, d.kind, d.size,
            coalesce(product(d.size) OVER (ORDER BY d.position ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 1)::BIGINT AS stride,
            (product(d.size) OVER ())::BIGINT AS world
        FROM _dimensions AS d
    ),
    _members AS (
        SELECT g.group_ranks, unnest(list_distinct(regexp_extract_all(g.group_ranks, '\d+')))::BIGINT AS member
        FROM (SELECT DISTINCT g.group_ranks FROM _groups AS g) AS g
        WHERE layout IS NOT NULL AND NOT contains(g.group_ranks, '...')
    ),
    _along AS (
        SELECT
            m.group_ranks, s.position, s.kind, count(DISTINCT (m.member // s.stride) % s.size) AS width, count(*) AS member_count,
            bool_and(m.member < s.world) AS is_inside
        FROM _members AS m
        CROSS JOIN _strides AS s
        GROUP BY m.group_ranks, s.position, s.kind
    ),
    -- A group that is not a full block along its dimensions has no kind.
    _laid_out AS (
        SELECT a.group_ranks, string_agg(a.kind, '+' ORDER BY a.position) FILTER (a.width > 1) AS kind
        FROM _along AS a
        GROUP BY a.group_ranks
        HAVING product(a.width) = max(a.member_count) AND bool_and(a.is_inside)
    ),
    _described AS (
        SELECT d.group_desc, lib._group_kind(d.group_desc) AS kind FROM (SELECT DISTINCT g.group_desc FROM _groups AS g) AS d
    )
SELECT
    n.run,
    n.rank,
    n.channel_id,
    n.label_name,
    n.group_id,
    g.group_name,
    g.group_desc,
    g.group_ranks,
    g.group_count,
    coalesce(a.kind, d.kind) AS group_kind,
    CASE WHEN a.kind IS NOT NULL THEN 'layout' WHEN d.kind IS NOT NULL THEN 'description' END AS kind_source
FROM _numbered AS n
JOIN _groups AS g ON g.run = n.run AND g.rank = n.rank AND g.group_id = n.group_id
LEFT JOIN _laid_out AS a ON a.group_ranks = g.group_ranks
LEFT JOIN _described AS d ON d.group_desc = g.group_desc
