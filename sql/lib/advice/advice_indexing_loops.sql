-- Advice: a loop of Python takes a tensor apart index by index for 1 % of the steps or more, and the device waits or there is none.
--
-- As torch's ForLoopIndexingPattern says it, which has no share.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib.advice_indexing_loops(
    -- Name of a relation with the columns of lib.advice_host.
    host
) AS TABLE
-- Columns: those of advice_data_loading.
SELECT
    h.run, h.rank, 'indexing_loops' AS rule, 'Replace the loop over indices by one operation' AS title, 'aten::select' AS subject, h.event_count, h.own_ns, h.exposed_ns AS ceiling_ns, 'medium' AS confidence, h.event_id,
    printf('Loops index a tensor element by element, %,d times%s, for %.1f %% of the steps; %s.', h.event_count, coalesce(', each with ' || h.subject, ''), h.own_pct, h.meanwhile) AS finding,
    'One operation on the whole tensor: slices, masks, torch.where, index_put_, scatter_, or torch.vmap over what the loop does.' AS remedy,
    h.evidence_sql, 'source_lines' AS next_analysis
FROM query_table(host) AS h
WHERE h.kind = 'indexing loop' AND h.exposed_ns >= 0.01 * h.step_ns
