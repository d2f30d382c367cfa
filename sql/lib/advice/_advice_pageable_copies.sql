-- Advice: exposed copies from or to pageable memory take at least 1 % of step time.
--
-- Such a copy goes through a driver buffer and blocks the host, even with non_blocking=True.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib._advice_pageable_copies(
    -- Name of a relation with the columns of lib.step_sums.
    spans,
    -- Name of a relation with the columns of lib._advice_kernels.
    kernels
) AS TABLE
-- Columns: those of _advice_data_loading.
WITH
    _chosen AS (
        SELECT k.*
        FROM query_table(kernels) AS k
        WHERE k.class = 'memory' AND contains(k.name, 'Pageable')
    )
SELECT
    f.run, f.rank, 'pageable_copies' AS rule, f.kernel AS subject, f.event_count, f.affected_ns, least(f.affected_ns, f.memory_ns) AS ceiling_ns, 'high' AS confidence, f.event_id,
    lib.message('advice.pageable_copies', {'copy_count': f.event_count, 'share_pct': f.affected_pct}) AS message,
    f.evidence_sql,
    'memory_bandwidth_summary' AS next_analysis
FROM lib.summed_kernels('_chosen', spans) AS f
WHERE least(f.affected_ns, f.memory_ns) >= 0.01 * f.recorded_ns
