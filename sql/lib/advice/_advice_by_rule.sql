-- Advice of the rules in advice_rules: time of one kind that takes a share of step time.
--
-- Kinds of time, besides those of lib._advice_idle and lib._advice_device:
--
-- - kinds of lib._advice_host; if the rank has no device, followed by "without GPU".
-- - kinds of lib._advice_serving.
-- - wait in expert exchanges, exposed expert exchanges: exposed time of lib._advice_experts, waiting or not.
-- - products far from the roofline, memory-bound products: matrix products of which at least half, or less than half,
--   of the time is more than the roofline allows. Calls whose kernels take less than 10 us on average do not count,
--   because shorter kernels are launch-bound, nor do products that other rules cover: in full single precision,
--   misaligned, or of unfused attention.
CREATE OR REPLACE MACRO lib._advice_by_rule(
    -- Name of a relation with the columns of lib.step_sums.
    spans,
    -- Name of a relation with the columns of lib._advice_idle.
    idle_time,
    -- Name of a relation with the columns of lib._advice_device.
    device_time,
    -- Name of a relation with the columns of lib._advice_host.
    host,
    -- Name of a relation with the columns of lib._advice_serving.
    served,
    -- Name of a relation with the columns of lib._advice_experts.
    experts,
    -- Name of a relation with the columns of lib.modeled_calls.
    calls
) AS TABLE
-- Columns:
--   run            VARCHAR         Run name.
--   rank           INTEGER         Rank of the process.
--   rule           VARCHAR         Name of the rule.
--   subject        VARCHAR         Operator, kernel, call or annotation with the largest contribution; NULL if it has no name.
--   event_count    BIGINT [count]  Number of events or gaps that triggered the rule.
--   affected_ns    BIGINT [ns]     Total time of these events or gaps; NULL if they have no duration.
--   saved_ns       BIGINT [ns]     Upper bound on the saving, at most the part of step time that the rule concerns; NULL if unknown.
--   confidence     VARCHAR         high: recorded directly; medium: inferred from kernel names or shares; low: a hint.
--   event_id       BIGINT          event_id of an example; NULL if there is none.
--   message        STRUCT          Finding and recommendation, as returned by lib.message.
--   evidence_sql   VARCHAR         Query that shows the evidence.
--   next_analysis  VARCHAR         Analysis that shows more.
WITH
    _products AS (
        SELECT
            c.run, c.rank, c.name, 2 * c.roofline_ns < c.device_ns AS is_far, c.flops / c.peak_tflops < c.moved_bytes / c.peak_tbps AS is_memory,
            c.kernel_count, c.device_ns, least(round(c.roofline_ns)::BIGINT, c.device_ns) AS least_ns
        FROM query_table(calls) AS c
        WHERE
            c.is_matrix AND c.flops > 0 AND c.roofline_ns IS NOT NULL AND c.device_ns >= 10000 * c.kernel_count
            AND NOT regexp_matches(c.name, '(b|baddb)mm$|matmul$|einsum$')
            AND NOT regexp_matches(c.kernels, '(?i)(^|_)[sf]gemm|simt|_ffma|_align[12]($|[^0-9])')
    ),
    _operators AS (
        SELECT
            p.run, p.rank, p.name, p.is_far, p.is_memory, sum(p.kernel_count)::BIGINT AS event_count, sum(p.device_ns)::BIGINT AS total_ns, sum(p.least_ns)::BIGINT AS least_ns
        FROM _products AS p
        WHERE p.is_far OR p.is_memory
        GROUP BY p.run, p.rank, p.name, p.is_far, p.is_memory
    ),
    _on_roofline AS (
        SELECT
            o.run, o.rank, CASE WHEN o.is_far THEN 'products far from the roofline' ELSE 'memory-bound products' END AS kind,
            arg_max(o.name, (o.total_ns, o.name)) AS subject, sum(o.event_count)::BIGINT AS event_count,
            sum(o.total_ns)::BIGINT AS affected_ns, sum(o.least_ns)::BIGINT AS least_ns
        FROM _operators AS o
        GROUP BY o.run, o.rank, o.is_far
    ),
    _measured AS (
        FROM query_table(idle_time)
        UNION ALL BY NAME
        FROM query_table(device_time)
        UNION ALL BY NAME
        SELECT
            h.run, h.rank, h.kind || CASE WHEN h.has_device THEN '' ELSE ' without GPU' END AS kind,
            CASE h.kind WHEN 'indexing loop' THEN 'aten::select' ELSE h.subject END AS subject, h.subject AS operator, h.event_count,
            h.affected_ns, h.affected_pct, h.exposed_pct, h.event_id, h.evidence_sql,
            CASE h.kind WHEN 'filled copy' THEN least(h.affected_ns, h.exposed_ns + least(h.device_ns, h.memory_ns)) ELSE h.exposed_ns END AS saved_ns
        FROM query_table(host) AS h
        UNION ALL BY NAME
        SELECT
            v.run, v.rank, v.kind, v.event_count, v.affected_ns, v.lost_ns AS saved_ns, v.event_id,
            format('FROM iterations_v1(runs := [{}], ranks := [{}])', lib.sql_literal(v.run), v.rank) AS evidence_sql
        FROM query_table(served) AS v
        UNION ALL BY NAME
        SELECT
            e.run, e.rank, unnest(['wait in expert exchanges', 'exposed expert exchanges']) AS kind, e.subject, e.event_count, e.affected_ns,
            unnest([e.wait_ns, e.exposed_ns - coalesce(e.wait_ns, 0)]) AS saved_ns, e.event_id,
            format('FROM expert_parallel_v1(runs := [{}], ranks := [{}])', lib.sql_literal(e.run), e.rank) AS evidence_sql
        FROM query_table(experts) AS e
        UNION ALL BY NAME
        SELECT
            p.run, p.rank, p.kind, p.subject, p.event_count, p.affected_ns, 100 * (p.least_ns / p.affected_ns) AS peak_pct,
            CASE WHEN p.kind <> 'memory-bound products' THEN
                (least(p.affected_ns, s.compute_ns)::HUGEINT * (p.affected_ns - p.least_ns) // p.affected_ns)::BIGINT
            END AS saved_ns,
            format('FROM roofline_v1(runs := [{}], ranks := [{}])', lib.sql_literal(p.run), p.rank) AS evidence_sql
        FROM _on_roofline AS p
        JOIN query_table(spans) AS s ON s.run = p.run AND s.rank = p.rank
    ),
    _ruled AS (
        SELECT
            m.* REPLACE (
                r.rule AS rule, coalesce(m.affected_pct, 100 * (m.affected_ns / s.recorded_ns)) AS affected_pct,
                CASE WHEN r.saved_pct IS NULL THEN m.saved_ns ELSE ceil(m.saved_ns * r.saved_pct::DECIMAL(4, 1) * 0.01) END::BIGINT AS saved_ns
            ),
            s.recorded_ns, r.* EXCLUDE (rule, kind)
        FROM _measured AS m
        JOIN advice_rules AS r ON r.kind = m.kind AND (m.rule IS NULL OR r.rule = m.rule) AND r.code IS NOT NULL
        JOIN query_table(spans) AS s ON s.run = m.run AND s.rank = m.rank
    )
SELECT
    u.run, u.rank, u.rule, u.subject, u.event_count, u.affected_ns, u.saved_ns, u.confidence, u.event_id,
    lib.message(CASE WHEN regexp_matches(u.subject, u.subject_pattern) THEN u.subject_code ELSE u.code END, {
        'share_pct': u.affected_pct, 'lost_pct': 100 * (u.saved_ns / u.recorded_ns), 'exposed_pct': u.exposed_pct, 'peak_pct': u.peak_pct,
        'event_count': u.event_count, 'kernel_count': u.kernel_count, 'product_count': u.product_count, 'short_ns': u.short_ns, 'subject': u.subject, 'operator': u.operator
    }) AS message,
    u.evidence_sql, u.next_analysis
FROM _ruled AS u
WHERE
    -- Decimals, because a share in binary is not exact at the threshold.
    (
        u.min_affected_pct IS NULL OR u.affected_ns >= u.min_affected_pct::DECIMAL(4, 1) * 0.01 * u.recorded_ns
        OR u.is_late AND u.affected_ns >= u.min_late_pct::DECIMAL(4, 1) * 0.01 * u.recorded_ns
    )
    AND (u.min_saved_pct IS NULL OR u.saved_ns >= u.min_saved_pct::DECIMAL(4, 1) * 0.01 * u.recorded_ns)
    AND (u.min_count_pct IS NULL OR u.event_count >= u.min_count_pct::DECIMAL(4, 1) * 0.01 * u.kernel_count)
