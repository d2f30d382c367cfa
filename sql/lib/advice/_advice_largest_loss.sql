-- Advice for runs in which no rule can save 3 % of step time: the largest loss of each rank, and the analysis that
-- shows this loss.
--
-- Losses are the parts of recorded step time without compute. If each loss is below 5 %, compute dominates.
-- A capture that is too short has no loss to name.
-- Without a device, the largest part of lib.host_steps is named; its subject is the operator with the most time, or for
-- code outside operators the line.
CREATE OR REPLACE MACRO lib._advice_largest_loss(
    runs,
    ranks,
    -- Profiler steps to include; NULL means every step.
    steps,
    include_last_profiler_step,
    -- Name of a relation with the columns of lib._advice_by_rule: findings of the rules.
    found,
    -- Name of a relation with the columns of lib.step_sums.
    spans,
    -- Name of a relation with the columns of lib._advice_too_short.
    too_short
) AS TABLE
-- Columns: those of _advice_by_rule.
WITH
    _advised AS (
        SELECT DISTINCT f.run
        FROM query_table(found) AS f
        JOIN query_table(spans) AS s ON s.run = f.run AND s.rank = f.rank
        WHERE f.saved_ns >= 0.03 * s.recorded_ns
    ),
    _silent AS (
        SELECT s.*, s.idle_ns + s.unrecorded_ns >= s.step_ns AS is_host_only
        FROM query_table(spans) AS s
        WHERE s.run NOT IN (SELECT a.run FROM _advised AS a) AND s.step_ns > 0
    ),
    _losses AS (
        SELECT s.run, s.rank, s.step_ns, s.recorded_ns, s.compute_ns, s.unrecorded_ns, s.is_host_only, unnest([
            {'kind': 'idle', 'ns': s.idle_ns, 'analysis': 'idle_causes'},
            {'kind': 'transfer', 'ns': s.transfer_ns, 'analysis': 'process_group_costs'},
            {'kind': 'unmatched', 'ns': s.unmatched_ns, 'analysis': 'collectives'},
            {'kind': 'wait', 'ns': s.wait_ns, 'analysis': 'stragglers'},
            {'kind': 'memory', 'ns': s.memory_ns, 'analysis': 'memory_bandwidth_summary'}
        ]) AS loss
        FROM _silent AS s
    ),
    _largest AS (
        SELECT l.run, l.rank, l.step_ns, l.recorded_ns, l.compute_ns, l.unrecorded_ns, l.is_host_only, arg_max(l.loss, (l.loss.ns, l.loss.kind)) AS loss
        FROM _losses AS l
        GROUP BY ALL
    ),
    _host_steps AS MATERIALIZED (
        SELECT h.*
        FROM lib.host_steps(runs, ranks, steps, include_last_profiler_step) AS h
        SEMI JOIN _silent AS s ON s.run = h.run AND s.rank = h.rank AND s.is_host_only
    ),
    _host_parts AS (
        SELECT
            h.run, h.rank,
            unnest([
                {'words': 'data loading', 'ns': sum(h.data_loading_ns), 'part': NULL},
                {'words': 'synchronization', 'ns': sum(h.synchronization_ns), 'part': NULL},
                {'words': 'communication', 'ns': sum(h.communication_ns), 'part': NULL},
                {'words': 'the backward pass', 'ns': sum(h.backward_ns), 'part': 'backward'},
                {'words': 'the optimizer', 'ns': sum(h.optimizer_ns), 'part': NULL},
                {'words': 'operators of the forward pass and others', 'ns': sum(h.forward_ns), 'part': 'forward'},
                {'words': 'code outside operators', 'ns': sum(h.other_ns), 'part': 'other'}
            ]) AS part
        FROM _host_steps AS h
        GROUP BY h.run, h.rank
    ),
    _host AS (
        SELECT p.run, p.rank, arg_max(p.part, (p.part.ns, p.part.words)) AS part
        FROM _host_parts AS p
        GROUP BY p.run, p.rank
    ),
    _named AS (
        SELECT n.run, n.rank, n.part, arg_max(n.name, (n.ns, n.name)) AS name
        FROM lib._part_names('_host_steps') AS n
        GROUP BY n.run, n.rank, n.part
    ),
    _told AS (
        SELECT
            l.*, h.part AS host_part, CASE WHEN c.run IS NULL THEN n.name END AS subject, c.event_count,
            CASE
                WHEN c.run IS NOT NULL THEN 'profiler_steps'
                WHEN l.is_host_only AND h.part.words = 'code outside operators' THEN CASE WHEN n.name IS NULL THEN 'host_accounting' ELSE 'source_lines' END
                WHEN l.is_host_only THEN 'operator_table'
                WHEN l.loss.ns >= 0.05 * l.recorded_ns THEN l.loss.analysis
                ELSE 'kernel_table'
            END AS next_analysis,
            100 * (l.loss.ns / l.recorded_ns) AS share_pct
        FROM _largest AS l
        LEFT JOIN _host AS h ON h.run = l.run AND h.rank = l.rank
        LEFT JOIN _named AS n ON n.run = l.run AND n.rank = l.rank AND n.part = h.part.part
        LEFT JOIN query_table(too_short) AS c ON c.run = l.run AND c.rank = l.rank
    )
SELECT
    t.run, t.rank, 'largest_loss' AS rule, t.subject, NULL::BIGINT AS event_count,
    CASE WHEN t.is_host_only THEN t.host_part.ns::BIGINT WHEN t.next_analysis = 'kernel_table' THEN t.compute_ns ELSE t.loss.ns END AS affected_ns,
    -- What of it can be saved is unknown.
    NULL::BIGINT AS saved_ns,
    'low' AS confidence, NULL::BIGINT AS event_id,
    CASE
        WHEN t.event_count IS NOT NULL THEN lib.message('advice.largest_loss_too_short', {'event_count': t.event_count})
        WHEN t.is_host_only THEN lib.message('advice.largest_loss_without_gpu', {'share_pct': 100 * (t.host_part.ns / nullif(t.step_ns, 0))::DOUBLE, 'part': t.host_part.words})
        WHEN t.next_analysis = 'kernel_table' AND t.unrecorded_ns >= 0.05 * t.step_ns THEN
            lib.message('advice.largest_loss_unrecorded', {'share_pct': 100 * (t.compute_ns / t.recorded_ns), 'loss_pct': t.share_pct, 'unrecorded_pct': 100 * (t.unrecorded_ns / t.step_ns)})
        WHEN t.next_analysis = 'kernel_table' THEN lib.message('advice.largest_loss_compute', {'share_pct': 100 * (t.compute_ns / t.recorded_ns), 'loss_pct': t.share_pct})
        WHEN t.loss.kind = 'idle' THEN lib.message('advice.largest_loss_idle', {'share_pct': t.share_pct})
        WHEN t.loss.kind = 'transfer' THEN lib.message('advice.largest_loss_transfer', {'share_pct': t.share_pct})
        WHEN t.loss.kind = 'unmatched' THEN lib.message('advice.largest_loss_unmatched', {'share_pct': t.share_pct})
        WHEN t.loss.kind = 'wait' THEN lib.message('advice.largest_loss_wait', {'share_pct': t.share_pct})
        ELSE lib.message('advice.largest_loss_memory', {'share_pct': t.share_pct})
    END AS message,
    format('FROM {}_v1(runs := [{}], ranks := [{}])', t.next_analysis, lib.sql_literal(t.run), t.rank) AS evidence_sql,
    t.next_analysis
FROM _told AS t
