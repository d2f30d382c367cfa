-- Advice: the GPU waits while the host allocates or frees memory in the driver, for 1 % of the steps or more.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib.advice_driver_memory(
    -- Name of a relation with the columns of lib.step_sums.
    spans,
    -- Name of a relation with the columns of lib.caused_idle.
    idle
) AS TABLE
-- Columns: those of advice_data_loading.
WITH
    _chosen AS (
        SELECT i.* REPLACE (coalesce(i.call, i.name) AS name)
        FROM query_table(idle) AS i
        WHERE i.cause = 'runtime call' AND regexp_matches(coalesce(i.call, i.name, ''), 'Malloc|HostAlloc|Free|MemCreate|MemAlloc|MemRelease|MemMap|MemUnmap')
    )
SELECT
    f.run, f.rank, 'driver_memory' AS rule, 'Stop asking the driver for memory' AS title, f.subject, f.event_count, f.own_ns, f.own_ns AS ceiling_ns, 'high' AS confidence, f.event_id,
    printf('%s and the like take %.1f %% of the steps, in %,d gaps.', f.subject, f.own_pct, f.event_count) AS finding,
    'Warm up with the largest shapes before what counts; PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; leave room, so that the allocator need not give memory back and ask again.' AS remedy,
    f.evidence_sql || ' WHERE cause = ''runtime call''' AS evidence_sql,
    'idle_causes' AS next_analysis
FROM lib.summed_idle('_chosen', spans) AS f
WHERE f.own_ns >= 0.01 * f.step_ns
