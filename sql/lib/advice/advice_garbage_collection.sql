-- Advice: Python collects garbage for 1 % of the steps or more, and the device waits or there is none.
--
-- Recorded where the profiler is asked for record_python_gc_info, or as a frame where gc.collect() is called (with_stack=True).
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib.advice_garbage_collection(
    -- Name of a relation with the columns of lib.advice_host.
    host
) AS TABLE
-- Columns: those of advice_data_loading.
SELECT
    h.run, h.rank, 'garbage_collection' AS rule, 'Collect garbage when nobody waits' AS title, h.subject, h.event_count, h.own_ns, h.exposed_ns AS ceiling_ns, 'high' AS confidence, h.event_id,
    printf('Python collects garbage %,d times, for %.1f %% of the steps; %s.', h.event_count, h.own_pct, h.meanwhile) AS finding,
    'gc.freeze() behind the warm-up, gc.disable(), and gc.collect() every so many steps on all ranks at once; no gc.collect() inside of a step.' AS remedy,
    h.evidence_sql, 'source_lines' AS next_analysis
FROM query_table(host) AS h
WHERE h.kind = 'garbage collection' AND h.exposed_ns >= 0.01 * h.step_ns
