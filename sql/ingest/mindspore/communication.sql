-- One row per communication operator and step: its start and duration (step trace) and its cost (HCCL).
--
-- Names are `stream_<stream>_<position>_<kind>-op<number>`.
CREATE OR REPLACE TABLE staged_cluster_communication AS
WITH
    traced AS (
        SELECT unnest(from_json(w.step_trace, '["MAP(VARCHAR, VARCHAR)"]')) AS r
        FROM mindspore_raw AS w
    ),
    ran AS (
        SELECT
            TRY_CAST(t.r['step_num'] AS BIGINT) AS step,
            replace(k.key, '_start_point', '') AS name,
            mindspore_ticks_to_ns(k.value) AS start_clock_ns,
            mindspore_ticks_to_ns(t.r[replace(k.key, '_start_point', '')]) AS dur
        FROM traced AS t, unnest(map_entries(t.r)) AS u(k)
        WHERE k.key LIKE '%\_start\_point' ESCAPE '\'
    ),
    rows_of_hccl AS (
        SELECT unnest(from_json(w.hccl, '["MAP(VARCHAR, VARCHAR)"]')) AS r
        FROM mindspore_raw AS w
    ),
    cost AS (
        SELECT
            TRY_CAST(c.r['step_num'] AS BIGINT) AS step,
            o.key AS name,
            mindspore_ms_to_ns(o.value ->> 1) AS communication_ns,
            mindspore_ms_to_ns(o.value ->> 2) AS wait_ns
        FROM rows_of_hccl AS c, unnest(map_entries(from_json(c.r['communication_operator_cost'], '"MAP(VARCHAR, JSON)"'))) AS u(o)
    )
SELECT
    coalesce(a.step, c.step) AS step,
    coalesce(a.name, c.name) AS name,
    TRY_CAST(regexp_extract(coalesce(a.name, c.name), '^stream_(\d+)_\d+_', 1) AS BIGINT) AS stream,
    nullif(regexp_extract(coalesce(a.name, c.name), '^(?:stream_\d+_\d+_)?(.*?)(?:-op\d+)?$', 1), '') AS kind,
    a.start_clock_ns,
    a.dur,
    c.communication_ns,
    c.wait_ns
FROM ran AS a
FULL JOIN cost AS c ON c.name = a.name AND c.step IS NOT DISTINCT FROM a.step
