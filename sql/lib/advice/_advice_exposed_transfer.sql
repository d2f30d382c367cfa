-- Advice: exposed transfers of collectives take at least 5 % of step time.
--
-- The threshold is that of TraceLens. Waits for other ranks are excluded; they are measured by matching collectives
-- with the traces of those ranks. If a rank has no match, its wait is the time that collectives take beyond what
-- their messages need (`_advice_message_sizes`). Confidence is high if other ranks were matched. Otherwise, it is
-- medium if at least half of the collective time is in collectives with a known message size, and low if not.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib._advice_exposed_transfer(
    -- Name of a relation with the columns of lib.step_sums.
    spans,
    -- Name of a relation with the columns of lib._advice_kernels.
    kernels,
    -- Name of a relation with the columns of lib._advice_message_sizes.
    sizes
) AS TABLE
-- Columns: those of _advice_data_loading.
WITH
    _chosen AS (
        SELECT k.*
        FROM query_table(kernels) AS k
        WHERE k.class = 'communication'
    ),
    _split AS (
        SELECT
            f.*, m.sized_ns, m.total_ns,
            (f.transfer_ns - f.transfer_ns * (coalesce(m.excess_ns, 0) / nullif(m.total_ns, 0)))::BIGINT AS known_ns,
            b.run IS NOT NULL AS is_matched
        FROM lib.summed_kernels('_chosen', spans) AS f
        LEFT JOIN query_table(sizes) AS m ON m.run = f.run AND m.rank = f.rank
        LEFT JOIN (SELECT DISTINCT c.run, c.rank FROM matched_collectives AS c WHERE c.wait_ns IS NOT NULL) AS b ON b.run = f.run AND b.rank = f.rank
    )
SELECT
    f.run, f.rank, 'exposed_transfer' AS rule, f.kernel AS subject, f.event_count, f.affected_ns, coalesce(f.known_ns, f.transfer_ns) AS ceiling_ns,
    CASE WHEN f.is_matched THEN 'high' WHEN 2 * f.sized_ns >= f.total_ns THEN 'medium' ELSE 'low' END AS confidence, f.event_id,
    CASE
        WHEN f.is_matched THEN lib.message('advice.exposed_transfer', {'exposed_pct': 100 * (coalesce(f.known_ns, f.transfer_ns) / nullif(f.recorded_ns, 0))})
        WHEN 2 * f.sized_ns >= f.total_ns THEN lib.message('advice.exposed_transfer_by_size', {'exposed_pct': 100 * (coalesce(f.known_ns, f.transfer_ns) / nullif(f.recorded_ns, 0))})
        ELSE lib.message('advice.exposed_transfer_or_wait', {'exposed_pct': 100 * (coalesce(f.known_ns, f.transfer_ns) / nullif(f.recorded_ns, 0))})
    END AS message,
    f.evidence_sql,
    'process_group_costs' AS next_analysis
FROM _split AS f
WHERE coalesce(f.known_ns, f.transfer_ns) >= 0.05 * f.recorded_ns
