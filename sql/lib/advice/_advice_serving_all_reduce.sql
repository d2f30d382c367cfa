-- Advice: NCCL or RCCL all-reduces not overlapped by compute take at least 5 % of a serving engine's step time.
--
-- Messages of a decode are small, so latency dominates. Faster kernels have other names and do not count: kernels
-- that read peer memory directly need only one hop, and kernels fused with the following normalization save its
-- memory reads. Known waits in matched collectives are not counted.
CREATE OR REPLACE MACRO lib._advice_serving_all_reduce(
    -- Name of a relation with the columns of lib.step_sums.
    spans,
    -- Name of a relation with the columns of lib._advice_device.
    device_time,
    -- Name of a relation with the columns of lib.measured_iterations: iterations annotated by an engine.
    named_iterations
) AS TABLE
-- Columns: those of _advice_by_rule.
WITH
    -- Assume that the same share of every kind of collective is exposed.
    _exposed AS (
        SELECT r.*, s.recorded_ns, ((s.transfer_ns + s.unmatched_ns) * least(1, r.affected_ns / c.affected_ns))::BIGINT AS exposed_ns
        FROM query_table(device_time) AS r
        JOIN query_table(device_time) AS c ON c.run = r.run AND c.rank = r.rank AND c.rule = 'exposed_transfer'
        JOIN query_table(spans) AS s ON s.run = r.run AND s.rank = r.rank
        WHERE r.rule = 'serving_all_reduce' AND (r.run, r.rank) IN (SELECT (i.run, i.rank) FROM query_table(named_iterations) AS i)
    )
SELECT
    f.run, f.rank, f.rule, f.subject, f.event_count, f.affected_ns, least(f.exposed_ns, f.affected_ns) AS saved_ns,
    'medium' AS confidence, f.event_id,
    lib.message('advice.serving_all_reduce', {'call_count': f.event_count, 'share_pct': 100 * (f.exposed_ns / f.recorded_ns), 'mean_ns': f.affected_ns / f.event_count}) AS message,
    f.evidence_sql,
    'process_group_costs' AS next_analysis
FROM _exposed AS f
WHERE f.exposed_ns >= 0.05 * f.recorded_ns
