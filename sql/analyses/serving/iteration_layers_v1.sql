-- Device time of each layer of a model in the iterations of a serving engine, by kind of work.
--
-- Layers are found by the repetition of kernels inside an iteration. Each layer has one attention: consecutive
-- attention kernels without a matrix product between them. A layer starts with the products, normalizations and
-- collectives that precede the attention in all layers in the same order. The last layer has the kernels in which it
-- equals an earlier one. Kernels before the first and after the last layer are rows of their own (embedding, sampling),
-- so the rows of an iteration sum to its busy time. Layers with the same kernels have the same kind. If fewer than two
-- layers are found, the iteration is one row of the part unknown. Concurrent time counts once, for the operation that
-- started first.
--
-- Title: Time of each layer of a model
-- Shown: rank, phase, part, layer, kind, mean_ns, attention_ns, gemm_ns, moe_ns, communication_ns, norm_ns, other_ns, op_count
-- Also: time per layer, layer time, layers
-- Report: if iterations
-- Status: experimental
-- Since: 0.1
-- Reference: none; a frequent question of users of serving engines
-- Needs: annotations of a serving engine, its Python frames, or graph replays
-- Scope: runs, ranks; an iteration of a server is no profiler step
CREATE OR REPLACE MACRO iteration_layers_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL
) AS TABLE
-- Columns:
--   run               VARCHAR         Run name.
--   rank              INTEGER         Rank of the process.
--   phase             VARCHAR         prefill, decode, mixed, speculative or idle; NULL if unknown.
--   layer_count       BIGINT [count]  Number of layers found in the iterations of the row; 0 if unknown.
--   part              VARCHAR         before, layer, after, or unknown if no layers are found.
--   layer             BIGINT [1]      Number of the layer, from 1; NULL for other parts.
--   kind              BIGINT [1]      Kind of the layer, from 1: layers with the same kernels, in the iteration in which most kinds are found; NULL for other parts.
--   iteration_count   BIGINT [count]  Number of iterations of the phase with so many layers.
--   op_count          BIGINT [count]  Number of device operations in all of these iterations.
--   busy_ns           BIGINT [ns]     Time of these operations, concurrent time once: the sum of the six kinds of work.
--   mean_ns           DOUBLE [ns]     busy_ns per iteration.
--   attention_ns      BIGINT [ns]     Part of busy_ns in attention and in writes to its cache.
--   gemm_ns           BIGINT [ns]     Part of busy_ns in matrix products.
--   moe_ns            BIGINT [ns]     Part of busy_ns in grouped products and routing of experts.
--   communication_ns  BIGINT [ns]     Part of busy_ns in communication.
--   norm_ns           BIGINT [ns]     Part of busy_ns in normalization.
--   other_ns          BIGINT [ns]     Part of busy_ns in all other operations.
WITH
    found AS MATERIALIZED (
        SELECT i.* FROM lib.serving_iterations(runs, ranks) AS i
    ),
    ops AS MATERIALIZED (
        SELECT
            o.run, o.rank, o.iteration_id, c.name,
            CASE
                WHEN c.category IN ('attention', 'kv_cache') THEN 'attention'
                WHEN c.category = 'gemm' THEN 'gemm'
                WHEN c.category IN ('moe', 'grouped_gemm') THEN 'moe'
                WHEN c.category IN ('communication', 'norm') THEN c.category
                ELSE 'other'
            END AS work,
            c.category = 'attention' AND c.class = 'computation' AS is_attention,
            row_number() OVER in_order AS position,
            greatest(0, o.ts + o.dur - greatest(o.ts, coalesce(max(o.ts + o.dur) OVER earlier, o.ts))) AS busy_ns
        FROM lib.iteration_ops('found', runs, ranks) AS o
        JOIN lib.categorized_gpu_ops(runs, ranks, NULL, true) AS c ON c.run = o.run AND c.rank = o.rank AND c.event_id = o.event_id
        WINDOW
            in_order AS (PARTITION BY o.run, o.rank, o.iteration_id ORDER BY o.ts, o.ts + o.dur, o.event_id),
            earlier AS (PARTITION BY o.run, o.rank, o.iteration_id ORDER BY o.ts, o.ts + o.dur, o.event_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
    ),
    -- Products, normalizations, collectives and attention, numbered by themselves.
    main_ops AS MATERIALIZED (
        SELECT o.*, row_number() OVER (PARTITION BY o.run, o.rank, o.iteration_id ORDER BY o.position) AS main_position
        FROM ops AS o
        WHERE o.is_attention OR o.work IN ('gemm', 'moe', 'communication', 'norm')
    ),
    anchored AS (
        SELECT
            o.run, o.rank, o.iteration_id, o.main_position AS position, o.is_attention,
            max(CASE WHEN o.is_attention THEN o.main_position END) OVER earlier AS last_attention,
            max(CASE WHEN o.work IN ('gemm', 'moe') THEN o.main_position END) OVER earlier AS last_product
        FROM main_ops AS o
        WINDOW earlier AS (PARTITION BY o.run, o.rank, o.iteration_id ORDER BY o.position ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
    ),
    anchors AS MATERIALIZED (
        SELECT
            a.run, a.rank, a.iteration_id, a.position,
            row_number() OVER in_order AS layer,
            coalesce(lag(a.position) OVER in_order, 0) AS previous,
            count(*) OVER (PARTITION BY a.run, a.rank, a.iteration_id) AS layer_count
        FROM anchored AS a
        WHERE a.is_attention AND (a.last_attention IS NULL OR a.last_product > a.last_attention)
        WINDOW in_order AS (PARTITION BY a.run, a.rank, a.iteration_id ORDER BY a.position)
    ),
    -- Whether the work at a distance before the attention is of the same kind in all layers.
    distances AS (
        SELECT
            a.run, a.rank, a.iteration_id, a.position - o.main_position AS distance,
            count(*) = any_value(a.layer_count) AND min(o.work) = max(o.work) AS is_common
        FROM anchors AS a
        JOIN main_ops AS o ON o.run = a.run AND o.rank = a.rank AND o.iteration_id = a.iteration_id AND o.main_position > a.previous AND o.main_position < a.position
        WHERE a.layer_count > 1
        GROUP BY a.run, a.rank, a.iteration_id, a.position - o.main_position
    ),
    leads AS (
        SELECT d.run, d.rank, d.iteration_id, coalesce(min(d.distance) FILTER (NOT d.is_common) - 1, max(d.distance), 0) AS lead_count
        FROM distances AS d
        GROUP BY d.run, d.rank, d.iteration_id
    ),
    starts AS MATERIALIZED (
        SELECT
            a.run, a.rank, a.iteration_id, a.layer, a.layer_count, o.position AS start_position,
            lead(o.position) OVER (PARTITION BY a.run, a.rank, a.iteration_id ORDER BY a.layer) AS next_position
        FROM anchors AS a
        LEFT JOIN leads AS l ON l.run = a.run AND l.rank = a.rank AND l.iteration_id = a.iteration_id
        JOIN main_ops AS o ON o.run = a.run AND o.rank = a.rank AND o.iteration_id = a.iteration_id AND o.main_position = a.position - coalesce(l.lead_count, 0)
        WHERE a.layer_count > 1
    ),
    -- How many kernels of the last layer equal those of each earlier layer.
    tails AS (
        SELECT
            s.run, s.rank, s.iteration_id, e.layer,
            coalesce(min(CASE WHEN x.name IS DISTINCT FROM y.name THEN y.position - e.start_position END), any_value(e.next_position - e.start_position)) AS equal_count
        FROM starts AS s
        JOIN starts AS e ON e.run = s.run AND e.rank = s.rank AND e.iteration_id = s.iteration_id AND e.layer < s.layer
        JOIN ops AS y ON y.run = e.run AND y.rank = e.rank AND y.iteration_id = e.iteration_id AND y.position >= e.start_position AND y.position < e.next_position
        LEFT JOIN ops AS x ON x.run = s.run AND x.rank = s.rank AND x.iteration_id = s.iteration_id AND x.position = s.start_position + y.position - e.start_position
        WHERE s.layer = s.layer_count
        GROUP BY s.run, s.rank, s.iteration_id, e.layer
    ),
    ends AS (
        SELECT t.run, t.rank, t.iteration_id, max(t.equal_count) AS op_count FROM tails AS t GROUP BY t.run, t.rank, t.iteration_id
    ),
    bounded AS MATERIALIZED (
        SELECT s.run, s.rank, s.iteration_id, s.layer, s.layer_count, s.start_position, coalesce(s.next_position, s.start_position + e.op_count) AS next_position
        FROM starts AS s
        LEFT JOIN ends AS e ON e.run = s.run AND e.rank = s.rank AND e.iteration_id = s.iteration_id
    ),
    placed AS MATERIALIZED (
        SELECT
            o.run, o.rank, o.iteration_id, o.name, o.work, o.busy_ns, o.position,
            CASE WHEN b.layer IS NULL THEN 'unknown' WHEN o.position < b.start_position THEN 'before' WHEN o.position < b.next_position THEN 'layer' ELSE 'after' END AS part,
            CASE WHEN o.position >= b.start_position AND o.position < b.next_position THEN b.layer END AS layer,
            coalesce(b.layer_count, 0) AS layer_count
        FROM ops AS o
        LEFT JOIN bounded AS b
            ON b.run = o.run AND b.rank = o.rank AND b.iteration_id = o.iteration_id
            AND (o.position >= b.start_position OR b.layer = 1) AND (o.position < b.next_position OR b.layer = b.layer_count)
    ),
    signatures AS (
        SELECT p.run, p.rank, p.iteration_id, p.layer, md5(string_agg(p.name, chr(10) ORDER BY p.position)) AS signature
        FROM placed AS p
        WHERE p.layer IS NOT NULL
        GROUP BY p.run, p.rank, p.iteration_id, p.layer
    ),
    firsts AS (
        SELECT s.*, min(s.layer) OVER (PARTITION BY s.run, s.rank, s.iteration_id, s.signature) AS first_layer
        FROM signatures AS s
    ),
    kinds AS (
        SELECT f.run, f.rank, f.iteration_id, f.layer, dense_rank() OVER (PARTITION BY f.run, f.rank, f.iteration_id ORDER BY f.first_layer) AS kind
        FROM firsts AS f
    )
SELECT
    p.run,
    p.rank,
    i.phase,
    p.layer_count,
    p.part,
    p.layer,
    max(k.kind) AS kind,
    count(DISTINCT p.iteration_id) AS iteration_count,
    count(*) AS op_count,
    sum(p.busy_ns)::BIGINT AS busy_ns,
    sum(p.busy_ns) / count(DISTINCT p.iteration_id) AS mean_ns,
    coalesce(sum(p.busy_ns) FILTER (p.work = 'attention'), 0)::BIGINT AS attention_ns,
    coalesce(sum(p.busy_ns) FILTER (p.work = 'gemm'), 0)::BIGINT AS gemm_ns,
    coalesce(sum(p.busy_ns) FILTER (p.work = 'moe'), 0)::BIGINT AS moe_ns,
    coalesce(sum(p.busy_ns) FILTER (p.work = 'communication'), 0)::BIGINT AS communication_ns,
    coalesce(sum(p.busy_ns) FILTER (p.work = 'norm'), 0)::BIGINT AS norm_ns,
    coalesce(sum(p.busy_ns) FILTER (p.work = 'other'), 0)::BIGINT AS other_ns
FROM placed AS p
JOIN found AS i ON i.run = p.run AND i.rank = p.rank AND i.event_id = p.iteration_id
LEFT JOIN kinds AS k ON k.run = p.run AND k.rank = p.rank AND k.iteration_id = p.iteration_id AND k.layer = p.layer
GROUP BY p.run, p.rank, i.phase, p.layer_count, p.part, p.layer
ORDER BY p.run, p.rank, i.phase, p.layer_count DESC, min(p.position), p.layer
