-- Serving against the roofline: minimum and measured time of an iteration, by phase and kind of work.
--
-- Times, FLOPs and bytes are means per iteration. Matrix products and other operators are modeled as in `roofline`.
-- Attention over a KV cache is modeled from the tokens and context lengths that the engine states, the number of heads
-- in recorded shapes, and the data type of the cache. If a value is not recorded, the result is NULL and reason
-- explains why. Engines do not record sliding windows: unless window_tokens is given, only the upper bound
-- max_roofline_ns is known for attention.
--
-- The row all covers the whole iteration. The roofline columns exclude calls without a known roofline; covered_pct is
-- the share of device_ns in calls with a known roofline. If the sizes of weights and cache are known from a different
-- source, pass weight_bytes and kv_token_bytes. A decode reads all weights and all contexts once, so max_memory_ns is
-- then its time per token at peak memory bandwidth.
--
-- Title: Serving against the roofline
-- Shown: rank, phase, category, device_ns, max_roofline_ns, peak_pct, covered_pct, max_memory_ns, reason
-- Report: table; if iterations
-- Status: experimental
-- Since: 0.1
-- Reference: TraceLens perf models, attention pairs = sq * sk - (sq * sq - sq) / 2
-- Needs: annotations of a serving engine, record_shapes, and a device in the list of peaks, or both custom peaks
-- Scope: runs, ranks; iterations of a server are not profiler steps
CREATE OR REPLACE MACRO serving_roofline_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    -- Number of keys that a layer with a sliding window attends to [tokens]; 0 without windows, NULL if unknown.
    window_tokens BIGINT := NULL,
    -- Share of the layers that have a sliding window [%].
    windowed_layer_pct DOUBLE := 100.0,
    -- Size of the weights that a rank reads in an iteration [bytes]; NULL: from the recorded shapes.
    weight_bytes BIGINT := NULL,
    -- Size of the keys and values of one token in all layers of a rank [bytes]; NULL: from the recorded shapes.
    kv_token_bytes BIGINT := NULL,
    -- Peak compute rate for all data types [TFLOP/s], instead of device_peaks; NULL: from device_peaks.
    custom_peak_tflops DOUBLE := NULL,
    -- Peak memory bandwidth [TB/s], instead of device_peaks; NULL: from device_peaks.
    custom_peak_tbps DOUBLE := NULL
) AS TABLE
-- Columns:
--   run               VARCHAR         Run name.
--   rank              INTEGER         Rank of the process.
--   phase             VARCHAR         prefill, decode, mixed, speculative or idle; NULL if unknown.
--   category          VARCHAR         Kind of work: attention, gemm, …; all for the whole iteration.
--   iteration_count   BIGINT [count]  Number of iterations.
--   iteration_ns      BIGINT [ns]     Mean time of an iteration, as in the serving analysis; NULL for a single kind of work.
--   call_count        BIGINT [count]  Number of operator calls in all iterations; for kernels without an operator, number of kernels.
--   device_ns         BIGINT [ns]     Time of the computation kernels of these calls.
--   device_pct        DOUBLE [%]      device_ns as a share of the phase's computation kernel time.
--   covered_pct       DOUBLE [%]      Share of device_ns in calls whose max_roofline_ns is known.
--   query_head_count  BIGINT [count]  Number of query heads of attention; NULL if not recorded, or if calls differ.
--   kv_head_count     BIGINT [count]  Number of key and value heads of attention.
--   kv_type           VARCHAR         Data type of the KV cache.
--   max_flops         BIGINT [1]      Upper bound of the floating-point operations, over all calls for which the number is known.
--   max_moved_bytes   BIGINT [bytes]  Upper bound of the bytes read and written, over all calls for which the number is known.
--   max_memory_ns     BIGINT [ns]     Time to move max_moved_bytes at peak memory bandwidth; in the row all, if weight_bytes and kv_token_bytes are given, time to read all weights and contexts.
--   roofline_ns       BIGINT [ns]     Time of the covered calls at the roofline; NULL if sliding windows are unknown.
--   max_roofline_ns   BIGINT [ns]     Upper bound of roofline_ns, with full contexts.
--   peak_pct          DOUBLE [%]      max_roofline_ns as a share of the time of the covered calls.
--   reason_code       VARCHAR         Code of the reason in the table messages.
--   reason            VARCHAR         Why the roofline of the largest uncovered part is unknown; NULL if everything is known.
WITH
    found AS MATERIALIZED (
        FROM lib.serving_iterations(runs, ranks)
    ),
    ops AS MATERIALIZED (
        FROM lib.iteration_ops('found', runs, ranks)
    ),
    modeled AS MATERIALIZED (
        FROM lib.modeled_calls(runs, ranks, NULL, true, custom_peak_tflops, custom_peak_tbps)
    ),
    measured AS (
        SELECT
            m.run, m.rank, m.phase, count(*) AS iteration_count,
            (sum(m.iteration_ns) / count(*))::BIGINT AS iteration_ns,
            CASE WHEN count(m.context_tokens) = count(*) THEN sum(m.context_tokens) / count(*) END AS context_tokens
        FROM lib.measured_iterations('found', 'ops') AS m
        GROUP BY m.run, m.rank, m.phase
    ),
    -- Round roofline times to whole picoseconds, so that sums do not depend on the order.
    calls AS MATERIALIZED (
        SELECT
            c.*, i.phase,
            round(1000::DOUBLE * c.max_roofline_ns)::HUGEINT AS max_roofline_ps,
            round(1000::DOUBLE * c.roofline_ns)::HUGEINT AS roofline_ps,
            TRY_CAST(c.max_flops AS BIGINT) AS flops,
            TRY_CAST(c.max_moved_bytes AS BIGINT) AS moved_bytes
        FROM lib.iteration_calls('found', 'ops', 'modeled', runs, ranks, window_tokens, windowed_layer_pct, custom_peak_tflops) AS c
        JOIN found AS i ON i.run = c.run AND i.rank = c.rank AND i.event_id = c.iteration_id
    ),
    reasons AS (
        SELECT c.run, c.rank, c.phase, c.category, c.reason_code, sum(c.device_ns)::BIGINT AS device_ns
        FROM calls AS c
        WHERE c.reason_code IS NOT NULL
        GROUP BY GROUPING SETS ((c.run, c.rank, c.phase, c.category, c.reason_code), (c.run, c.rank, c.phase, c.reason_code))
    ),
    main_reasons AS (
        SELECT r.run, r.rank, r.phase, r.category, arg_max(r.reason_code, (r.device_ns, r.reason_code)) AS reason_code
        FROM reasons AS r
        GROUP BY r.run, r.rank, r.phase, r.category
    ),
    summed AS (
        SELECT
            c.run, c.rank, c.phase, c.category, count(*) AS call_count, sum(c.device_ns) AS device_ns,
            sum(c.device_ns) FILTER (c.max_roofline_ps IS NOT NULL) AS covered_ns,
            CASE WHEN min(c.query_head_count) = max(c.query_head_count) THEN min(c.query_head_count) END AS query_head_count,
            CASE WHEN min(c.kv_head_count) = max(c.kv_head_count) THEN min(c.kv_head_count) END AS kv_head_count,
            CASE WHEN min(c.kv_type) = max(c.kv_type) THEN min(c.kv_type) END AS kv_type,
            sum(c.flops) AS flops, sum(c.moved_bytes) AS moved_bytes, max(c.peak_tbps) AS peak_tbps, sum(c.max_roofline_ps) AS max_roofline_ps,
            CASE WHEN count(c.roofline_ps) = count(c.max_roofline_ps) THEN sum(c.roofline_ps) END AS roofline_ps,
            min(c.reason_code) FILTER (c.reason_code IN ('operator_work.unknown_device', 'operator_work.unnamed_device')) AS device_reason
        FROM calls AS c
        GROUP BY GROUPING SETS ((c.run, c.rank, c.phase, c.category), (c.run, c.rank, c.phase))
    ),
    means AS (
        SELECT
            s.*, m.iteration_count, m.iteration_ns,
            sum(CASE WHEN s.category IS NULL THEN s.device_ns END) OVER (PARTITION BY s.run, s.rank, s.phase) AS phase_ns,
            s.moved_bytes / m.iteration_count / s.peak_tbps / 1000 AS recorded_ns,
            CASE WHEN s.category IS NULL THEN (weight_bytes + kv_token_bytes * m.context_tokens) / s.peak_tbps / 1000 END AS stated_ns
        FROM summed AS s
        JOIN measured AS m ON m.run = s.run AND m.rank = s.rank AND m.phase IS NOT DISTINCT FROM s.phase
    )
SELECT
    s.run,
    s.rank,
    s.phase,
    coalesce(s.category, 'all') AS category,
    s.iteration_count,
    CASE WHEN s.category IS NULL THEN s.iteration_ns END AS iteration_ns,
    s.call_count,
    (s.device_ns / s.iteration_count)::BIGINT AS device_ns,
    100 * (s.device_ns / nullif(s.phase_ns, 0)) AS device_pct,
    100 * (coalesce(s.covered_ns, 0) / nullif(s.device_ns, 0)) AS covered_pct,
    s.query_head_count,
    s.kv_head_count,
    s.kv_type,
    TRY_CAST(s.flops / s.iteration_count AS BIGINT) AS max_flops,
    TRY_CAST(s.moved_bytes / s.iteration_count AS BIGINT) AS max_moved_bytes,
    TRY_CAST(coalesce(s.stated_ns, s.recorded_ns) AS BIGINT) AS max_memory_ns,
    TRY_CAST(s.roofline_ps / s.iteration_count / 1000 AS BIGINT) AS roofline_ns,
    TRY_CAST(s.max_roofline_ps / s.iteration_count / 1000 AS BIGINT) AS max_roofline_ns,
    s.max_roofline_ps / nullif(s.covered_ns, 0) / 10 AS peak_pct,
    x.reason_code,
    t.message AS reason
FROM means AS s
LEFT JOIN main_reasons AS r ON r.run = s.run AND r.rank = s.rank AND r.phase IS NOT DISTINCT FROM s.phase AND r.category IS NOT DISTINCT FROM s.category
-- If no call is covered although its work is known, the device is the reason.
CROSS JOIN LATERAL (SELECT CASE WHEN s.covered_ns IS NULL AND s.moved_bytes IS NOT NULL THEN coalesce(s.device_reason, r.reason_code) ELSE r.reason_code END AS reason_code) AS x
LEFT JOIN messages AS t ON t.code = x.reason_code
ORDER BY s.run, s.rank, s.phase, s.category IS NOT NULL, s.device_ns DESC, s.category
