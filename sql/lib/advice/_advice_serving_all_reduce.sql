-- Advice: NCCL or RCCL all-reduces not overlapped by compute take at least 5 % of a serving engine's step time.
--
-- Messages of a decode are small, so latency dominates. Faster kernels have other names and do not count: kernels
-- that read peer memory directly need only one hop, and kernels fused with the following normalization save its
-- memory reads. Known waits in matched collectives are not counted.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib._advice_serving_all_reduce(
    -- Name of a relation with the columns of lib.step_sums.
    spans,
    -- Name of a relation with the columns of lib._advice_kernels.
    kernels,
    -- Name of a relation with the columns of lib.measured_iterations: iterations annotated by an engine.
    named_iterations
) AS TABLE
-- Columns: those of _advice_data_loading.
WITH
    _chosen AS (
        SELECT k.*, regexp_matches(k.name, '^(nccl|rccl)\w*AllReduce') AS is_reduce
        FROM query_table(kernels) AS k
        WHERE k.class = 'communication' AND (k.run, k.rank) IN (SELECT (i.run, i.rank) FROM query_table(named_iterations) AS i)
    ),
    _shares AS (
        SELECT c.run, c.rank, sum(c.total_ns)::BIGINT AS total_ns FROM _chosen AS c GROUP BY c.run, c.rank
    ),
    _reduces AS (
        FROM _chosen AS c WHERE c.is_reduce
    ),
    -- Assume that the same share of every kind of collective is exposed.
    _exposed AS (
        SELECT f.*, ((f.transfer_ns + f.unmatched_ns) * least(1, f.affected_ns / t.total_ns))::BIGINT AS exposed_ns
        FROM lib.summed_kernels('_reduces', spans) AS f
        JOIN _shares AS t ON t.run = f.run AND t.rank = f.rank
    )
SELECT
    f.run, f.rank, 'serving_all_reduce' AS rule, f.kernel AS subject, f.event_count, f.affected_ns, least(f.exposed_ns, f.affected_ns) AS ceiling_ns,
    'medium' AS confidence, f.event_id,
    lib.message('advice.serving_all_reduce', {'call_count': f.event_count, 'share_pct': 100 * (f.exposed_ns / f.recorded_ns), 'mean_ns': f.affected_ns / f.event_count}) AS message,
    f.evidence_sql,
    'process_group_costs' AS next_analysis
FROM _exposed AS f
WHERE f.exposed_ns >= 0.05 * f.recorded_ns
