-- Computation of serving iterations by operator call: device time and roofline time, including cached attention.
--
-- Attention over a KV cache is modeled from the numbers that the iteration states and from recorded shapes: 2
-- operations for each query-key pair, head, and element of a key or value. The keys and values of all contexts are
-- read once. A layer with a sliding window sees fewer keys. Engines do not record windows: unless windows are given,
-- only an upper bound is known for the roofline time of attention, namely its roofline time with full contexts.
CREATE OR REPLACE MACRO lib.iteration_calls(
    -- Name of a relation with the columns of lib.serving_iterations.
    iterations,
    -- Name of a relation with the columns of lib.iteration_ops.
    device_ops,
    -- Name of a relation with the columns of lib.modeled_calls.
    calls,
    runs,
    ranks,
    -- Keys that a layer with a sliding window sees; 0: no layer has a window; NULL: unknown.
    window_tokens,
    -- Share of the layers that have a sliding window [%].
    windowed_layer_pct,
    -- Peak compute rate for all data types [TFLOP/s], instead of device_peaks; NULL: from device_peaks.
    custom_tflops
) AS TABLE
-- Columns:
--   run                 VARCHAR           Run name.
--   rank                INTEGER           Rank of the process.
--   iteration_id        BIGINT            event_id of the iteration in serving_iterations.
--   event_id            BIGINT            event_id of the first device operation of the call.
--   name                VARCHAR           Name of the operator, or the reason why there is none.
--   category            VARCHAR           Kind of work.
--   device_ns           BIGINT [ns]       Duration of the call's kernels.
--   query_head_count    BIGINT [count]    Number of query heads of the attention; NULL if not recorded.
--   kv_head_count       BIGINT [count]    Number of key heads of the attention.
--   kv_type             VARCHAR           Data type of the KV cache.
--   max_flops           DOUBLE [1]        Floating-point operations, with full contexts unless windows are given; NULL: unknown.
--   max_moved_bytes     DOUBLE [bytes]    Bytes read and written, with full contexts unless windows are given; NULL: unknown.
--   peak_tbps           DOUBLE [TB/s]     Peak memory bandwidth; NULL: unknown.
--   max_roofline_ns     DOUBLE [ns]       Time at the roofline, with full contexts unless windows are given; NULL: unknown.
--   roofline_ns         DOUBLE [ns]       Time at the roofline; NULL: unknown (for attention, also if windows are unknown).
--   reason_code         VARCHAR           Code, in the table messages, of the reason why a value is unknown.
WITH
    _called AS MATERIALIZED (
        SELECT c.*, o.iteration_id, i.request_count, i.new_tokens, i.context_tokens, i.attention_pair_count, a.role, a.query_input, a.key_input, a.value_input
        FROM query_table(calls) AS c
        JOIN query_table(device_ops) AS o ON o.run = c.run AND o.rank = c.rank AND o.event_id = c.event_id
        JOIN query_table(iterations) AS i ON i.run = o.run AND i.rank = o.rank AND i.event_id = o.iteration_id
        LEFT JOIN attention_operators AS a ON a.operator = c.name
    ),
    _inputs AS (
        SELECT
            c.run, c.rank, c.event_id, c.role, d.dims[c.query_input + 1] AS q, d.dims[c.key_input + 1] AS k, d.dims[c.value_input + 1] AS v,
            d.types[c.query_input + 1] AS q_type, d.types[c.key_input + 1] AS k_type
        FROM _called AS c
        CROSS JOIN LATERAL (SELECT from_json(c.input_shapes, '[["DOUBLE"]]') AS dims, from_json(c.input_types, '["VARCHAR"]') AS types) AS d
        WHERE c.role = 'cache' OR c.role = 'attention' AND c.has_products AND c.roofline_ns IS NULL
    ),
    _caches AS (
        SELECT n.run, n.rank, min(n.k_type) AS kv_type
        FROM _inputs AS n
        WHERE n.role = 'cache'
        GROUP BY n.run, n.rank
        HAVING min(n.k_type) = max(n.k_type)
    ),
    _attentions AS (
        SELECT
            n.run, n.rank, n.event_id, n.q_type,
            -- Paged keys are the cache itself; otherwise, the type is taken from the operator that writes the cache.
            CASE WHEN len(n.k) = 4 THEN n.k_type ELSE c.kv_type END AS kv_type,
            CASE WHEN len(n.q) >= 3 THEN n.q[-2] END AS query_heads,
            CASE WHEN len(n.k) >= 3 THEN n.k[-2] END AS kv_heads,
            CASE WHEN len(n.q) >= 3 THEN n.q[-2] * n.q[-1] WHEN len(n.q) = 2 THEN n.q[2] END AS q_width,
            CASE WHEN len(n.k) >= 3 THEN n.k[-2] * n.k[-1] WHEN len(n.k) = 2 THEN n.k[2] END AS k_width,
            CASE WHEN len(n.v) >= 3 THEN n.v[-2] * n.v[-1] WHEN len(n.v) = 2 THEN n.v[2] END AS v_width,
            CASE WHEN len(n.q) >= 3 AND len(n.v) >= 3 THEN n.q[-2] * n.v[-1] WHEN v_width = k_width THEN q_width END AS out_width
        FROM _inputs AS n
        LEFT JOIN _caches AS c ON c.run = n.run AND c.rank = n.rank
        WHERE n.role = 'attention'
    ),
    _devices AS (
        SELECT m.run, m.rank, m.device, m.name, p.fp16_tflops, p.bf16_tflops, p.fp8_tflops
        FROM lib.device_models(runs, ranks) AS m
        LEFT JOIN device_peaks AS p ON regexp_matches(m.name, p.pattern)
        QUALIFY row_number() OVER (PARTITION BY m.run, m.rank, m.device ORDER BY p.priority) = 1
    ),
    _seen AS (
        SELECT
            c.*, a.event_id IS NOT NULL AS is_attention, p.name AS device_name, a.query_heads, a.kv_heads, a.kv_type, a.q_width, a.k_width, a.v_width, a.out_width,
            lib.elem_bytes(a.q_type) AS q_bytes, lib.elem_bytes(a.kv_type) AS kv_bytes,
            coalesce(custom_tflops::DOUBLE, CASE
                WHEN a.q_type = 'c10::BFloat16' THEN p.bf16_tflops
                WHEN a.q_type = 'c10::Half' THEN p.fp16_tflops
                WHEN starts_with(a.q_type, 'c10::Float8') THEN p.fp8_tflops
            END) AS attention_tflops,
            CASE WHEN window_tokens > 0 THEN windowed_layer_pct / 100 ELSE 0 END AS windowed,
            windowed * least(c.attention_pair_count::DOUBLE, c.new_tokens::DOUBLE * window_tokens) AS windowed_pairs,
            windowed * least(c.context_tokens::DOUBLE, c.request_count::DOUBLE * (window_tokens - 1) + c.new_tokens) AS windowed_context
        FROM _called AS c
        LEFT JOIN _attentions AS a ON a.run = c.run AND a.rank = c.rank AND a.event_id = c.event_id
        LEFT JOIN _devices AS p ON p.run = c.run AND p.rank = c.rank AND p.device IS NOT DISTINCT FROM c.device
    ),
    _worked AS (
        SELECT
            s.*,
            CASE
                WHEN s.is_attention THEN
                    2 * (s.q_width + s.out_width) * ((1 - s.windowed) * s.attention_pair_count + coalesce(s.windowed_pairs, 0))
                ELSE s.flops::DOUBLE
            END AS work,
            CASE
                WHEN s.is_attention THEN
                    s.kv_bytes * (s.k_width + s.v_width) * ((1 - s.windowed) * s.context_tokens + coalesce(s.windowed_context, 0))
                    + s.q_bytes * (s.q_width + s.out_width) * s.new_tokens
                ELSE s.moved_bytes::DOUBLE
            END AS traffic
        FROM _seen AS s
    ),
    _timed AS (
        SELECT
            w.*,
            CASE
                WHEN w.is_attention THEN lib.roofline_ns(w.work, w.traffic, w.attention_tflops, w.peak_tbps)
                ELSE w.roofline_ns
            END AS at_most_ns
        FROM _worked AS w
    )
SELECT
    t.run AS run, t.rank AS rank, t.iteration_id AS iteration_id, t.event_id AS event_id, t.name AS name, t.category AS category, t.device_ns AS device_ns,
    t.query_heads::BIGINT AS query_head_count, t.kv_heads::BIGINT AS kv_head_count, t.kv_type AS kv_type,
    t.work AS max_flops, t.traffic AS max_moved_bytes, t.peak_tbps AS peak_tbps, t.at_most_ns AS max_roofline_ns,
    CASE WHEN NOT t.is_attention OR window_tokens IS NOT NULL THEN t.at_most_ns END AS roofline_ns,
    CASE
        WHEN t.name = '[graph replay]' THEN 'serving.graph_without_capture'
        WHEN NOT t.is_attention THEN t.reason_code
        WHEN t.q_width IS NULL OR t.k_width IS NULL OR t.out_width IS NULL THEN 'operator_work.shapes_not_recorded'
        WHEN t.context_tokens IS NULL OR t.attention_pair_count IS NULL THEN 'serving.contexts_not_stated'
        WHEN t.kv_bytes IS NULL THEN 'serving.kv_type_unknown'
        WHEN t.peak_tbps IS NULL AND t.device_name IS NULL THEN 'operator_work.unnamed_device'
        WHEN t.peak_tbps IS NULL THEN 'operator_work.unknown_device'
        WHEN t.at_most_ns IS NULL THEN 'operator_work.unknown_peak'
        WHEN window_tokens IS NULL THEN 'serving.windows_unknown'
    END AS reason_code
FROM _timed AS t
