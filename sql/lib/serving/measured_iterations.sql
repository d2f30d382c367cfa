-- Iterations of serving engines with their measured times on the host and on the device, and the gaps between them.
CREATE OR REPLACE MACRO lib.measured_iterations(
    -- Name of a relation with the columns of lib.serving_iterations.
    iterations,
    -- Name of a relation with the columns of lib.iteration_ops.
    device_ops
) AS TABLE
-- Columns: those of iterations_v1.
WITH
    -- Each operation adds the time by which it extends beyond all previous operations.
    _busy AS (
        SELECT
            o.*, o.ts + o.dur AS end_ts,
            greatest(0, o.ts + o.dur - greatest(o.ts, coalesce(max(o.ts + o.dur) OVER earlier, o.ts))) AS added_ns
        FROM query_table(device_ops) AS o
        WINDOW earlier AS (PARTITION BY o.run, o.rank, o.iteration_id ORDER BY o.ts, o.ts + o.dur, o.event_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
    ),
    _parts AS (
        SELECT
            b.run, b.rank, b.iteration_id, min(b.ts) AS device_ts, max(b.end_ts) AS device_end, sum(b.added_ns)::BIGINT AS busy_ns,
            count(*) AS op_count, count(b.replay_id) AS replayed_count, count(DISTINCT b.replay_id) AS graph_count,
            CASE WHEN min(c.graph_tokens) = max(c.graph_tokens) THEN min(c.graph_tokens) END AS graph_tokens
        FROM _busy AS b
        LEFT JOIN graph_matches AS c ON c.run = b.run AND c.rank = b.rank AND c.event_id = b.event_id
        GROUP BY b.run, b.rank, b.iteration_id
    ),
    _numbered AS (
        SELECT
            f.*, p.* EXCLUDE (run, rank, iteration_id),
            row_number() OVER (PARTITION BY f.run, f.rank ORDER BY f.ts, f.event_id) AS iteration,
            -- Iterations may overlap, and the one before need not end last.
            max(p.device_end) OVER (
                PARTITION BY f.run, f.rank ORDER BY p.device_ts NULLS LAST, f.event_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ) AS previous_end
        FROM query_table(iterations) AS f
        LEFT JOIN _parts AS p ON p.run = f.run AND p.rank = f.rank AND p.iteration_id = f.event_id
    ),
    _windows AS (
        SELECT {'run': n.run, 'rank': n.rank, 'id': n.event_id, 'is_gap': false} AS lane, n.device_ts AS ts, n.device_end - n.device_ts AS dur FROM _numbered AS n WHERE n.device_ts IS NOT NULL
        UNION ALL
        SELECT {'run': n.run, 'rank': n.rank, 'id': n.event_id, 'is_gap': true}, n.previous_end, n.device_ts - n.previous_end FROM _numbered AS n WHERE n.device_ts > n.previous_end
    ),
    _unrecorded AS (
        SELECT w.lane, sum(least(w.ts + w.dur, u.ts + u.dur) - greatest(w.ts, u.ts))::BIGINT AS ns
        FROM _windows AS w
        JOIN unrecorded_time AS u ON u.run = w.lane.run AND u.rank = w.lane.rank AND u.ts < w.ts + w.dur AND u.ts + u.dur > w.ts
        WHERE u.kind <> 'undecided'
        GROUP BY w.lane
    ),
    _measured AS (
        SELECT n.*, coalesce(i.ns, 0) AS unrecorded_ns, n.device_end - n.device_ts - coalesce(i.ns, 0) AS device_ns, n.device_ts - n.previous_end - coalesce(g.ns, 0) AS gap_before_ns
        FROM _numbered AS n
        LEFT JOIN _unrecorded AS i ON i.lane = {'run': n.run, 'rank': n.rank, 'id': n.event_id, 'is_gap': false}
        LEFT JOIN _unrecorded AS g ON g.lane = {'run': n.run, 'rank': n.rank, 'id': n.event_id, 'is_gap': true}
    )
SELECT
    m.run, m.rank, m.iteration, m.detected_by, m.framework, m.phase, m.request_count, m.new_tokens, m.prefill_tokens,
    m.min_output_tokens, m.max_output_tokens, m.context_tokens, m.attention_pair_count, m.padded_request_count,
    coalesce(m.graph_tokens, CASE WHEN m.new_tokens = m.request_count THEN m.padded_request_count END) AS padded_tokens,
    m.ts, m.end_ts - m.ts AS host_ns, m.device_ts, m.device_ns,
    CASE WHEN m.device_ts IS NOT NULL THEN m.unrecorded_ns END AS unrecorded_ns,
    m.busy_ns, 100::DOUBLE * m.busy_ns / nullif(m.device_ns, 0) AS busy_pct, m.gap_before_ns,
    m.device_ns + greatest(coalesce(m.gap_before_ns, 0), 0) AS iteration_ns,
    1e9 * m.min_output_tokens / nullif(m.device_ns + greatest(coalesce(m.gap_before_ns, 0), 0), 0) AS min_output_tokens_per_s,
    CASE WHEN m.replayed_count >= 0.9 * m.op_count THEN 'graph' WHEN m.replayed_count > 0 THEN 'piecewise' WHEN m.op_count > 0 THEN 'eager' END AS execution,
    coalesce(m.graph_count, 0) AS graph_count, coalesce(m.op_count, 0) AS op_count, m.name, m.event_id
FROM _measured AS m
