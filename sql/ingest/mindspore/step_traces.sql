-- One row per step, and a row with step NULL for the recorder's mean over the steps.
--
-- Rows of the analysis file have no step number: the n-th row is step n, and the last row is the mean.
CREATE OR REPLACE TABLE staged_cluster_step_traces AS
WITH
    traced AS (
        SELECT unnest(from_json(w.step_trace, '["MAP(VARCHAR, VARCHAR)"]')) AS r
        FROM mindspore_raw AS w
    ),
    analyzed_list AS (
        SELECT from_json(w.analysis, '["MAP(VARCHAR, VARCHAR)"]') AS l
        FROM mindspore_raw AS w
    ),
    analyzed AS (
        SELECT
            CASE WHEN x.position < len(x.l) THEN x.position END AS step,
            x.r
        FROM (SELECT a.l, unnest(a.l) AS r, generate_subscripts(a.l, 1) AS position FROM analyzed_list AS a) AS x
    ),
    communicated AS (
        SELECT unnest(from_json(w.hccl, '["MAP(VARCHAR, VARCHAR)"]')) AS r
        FROM mindspore_raw AS w
    ),
    steps AS (
        SELECT TRY_CAST(t.r['step_num'] AS BIGINT) AS step FROM traced AS t
        UNION
        SELECT a.step FROM analyzed AS a
        UNION
        SELECT TRY_CAST(c.r['step_num'] AS BIGINT) FROM communicated AS c
    )
SELECT
    s.step,
    mindspore_ticks_to_ns(t.r['start_point']) AS start_clock_ns,
    mindspore_ticks_to_ns(t.r['end_point']) AS end_clock_ns,
    mindspore_ticks_to_ns(t.r['fp_point']) AS forward_clock_ns,
    mindspore_ticks_to_ns(t.r['bp_point']) AS backward_clock_ns,
    mindspore_ticks_to_ns(t.r['total']) AS total_ns,
    mindspore_ticks_to_ns(t.r['iteration_interval']) AS iteration_interval_ns,
    mindspore_ticks_to_ns(t.r['fp_and_bp']) AS forward_backward_ns,
    mindspore_ticks_to_ns(t.r['tail']) AS tail_ns,
    mindspore_ms_to_ns(a.r['computation_time']) AS computation_ns,
    mindspore_ms_to_ns(a.r['communication_alone_time']) AS communication_alone_ns,
    mindspore_ms_to_ns(a.r['receive_alone_time']) AS receive_alone_ns,
    mindspore_ms_to_ns(a.r['collective_communication_alone_time']) AS collective_alone_ns,
    mindspore_ms_to_ns(a.r['stage_time']) AS stage_ns,
    mindspore_ms_to_ns(c.r['communication_cost']) AS communication_ns,
    mindspore_ms_to_ns(c.r['wait_cost']) AS communication_wait_ns
FROM steps AS s
LEFT JOIN traced AS t ON TRY_CAST(t.r['step_num'] AS BIGINT) IS NOT DISTINCT FROM s.step
LEFT JOIN analyzed AS a ON a.step IS NOT DISTINCT FROM s.step
LEFT JOIN communicated AS c ON TRY_CAST(c.r['step_num'] AS BIGINT) IS NOT DISTINCT FROM s.step
