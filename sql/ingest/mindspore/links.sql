-- One row per link, step and communication operator; operator NULL means all operators of the step.
--
-- The JSON is nested: `<source>-<destination>` ─▶ link type ─▶ [ms, KB (1000 bytes), KB/s].
CREATE OR REPLACE TABLE staged_cluster_links AS
WITH
    rows_of_hccl AS (
        SELECT unnest(from_json(w.hccl, '["MAP(VARCHAR, VARCHAR)"]')) AS r
        FROM mindspore_raw AS w
    ),
    linked AS (
        SELECT TRY_CAST(c.r['step_num'] AS BIGINT) AS step, NULL::VARCHAR AS name, c.r['link_info']::JSON AS links
        FROM rows_of_hccl AS c
        UNION ALL
        SELECT TRY_CAST(c.r['step_num'] AS BIGINT), o.key, o.value -> 3
        FROM rows_of_hccl AS c, unnest(map_entries(from_json(c.r['communication_operator_cost'], '"MAP(VARCHAR, JSON)"'))) AS u(o)
    ),
    pairs AS (
        SELECT k.step, k.name, l.key AS link, l.value AS kinds
        FROM linked AS k, unnest(map_entries(from_json(k.links, '"MAP(VARCHAR, JSON)"'))) AS u(l)
    )
SELECT
    p.step,
    p.name AS operator,
    TRY_CAST(split_part(p.link, '-', 1) AS BIGINT) AS src_rank,
    TRY_CAST(split_part(p.link, '-', 2) AS BIGINT) AS dst_rank,
    t.key AS link_type,
    mindspore_ms_to_ns(t.value ->> 0) AS dur,
    TRY_CAST(TRY_CAST(t.value ->> 1 AS DECIMAL(28, 6)) * 1000 AS BIGINT) AS bytes
FROM pairs AS p, unnest(map_entries(from_json(p.kinds, '"MAP(VARCHAR, JSON)"'))) AS u(t)
