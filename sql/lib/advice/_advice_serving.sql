-- Losses of annotated serving iterations by kind: idle time inside eager decodes, idle time between iterations,
-- padding of graphs, and decodes that wait for prompts.
--
-- Idle time comes from `idle_parts`, excluding unrecorded time. A gap between two iterations counts if its idle time
-- is at most 50 ms; longer gaps mean that the server has no requests. The loss from padding is the busy time of a
-- decode, multiplied by the share of graph rows without a token or request. An iteration that processes prompts
-- together with decodes delays the decodes; the loss is how much longer it takes than the median decode iteration.
CREATE OR REPLACE MACRO lib._advice_serving(
    -- Name of a relation with run, rank, ts and end_ts: the steps in scope.
    step_spans,
    -- Name of a relation with the columns of lib.idle_parts.
    parts,
    -- Name of a relation with the columns of lib.measured_iterations: iterations annotated by an engine.
    named_iterations
) AS TABLE
-- Columns:
--   run          VARCHAR         Run name.
--   rank         INTEGER         Rank of the process.
--   kind         VARCHAR         eager_decode, scheduling_gap, graph_padding or mixed_iterations.
--   event_count  BIGINT [count]  Number of iterations.
--   affected_ns  BIGINT [ns]     Device time of the iterations; for scheduling_gap, idle time before them.
--   lost_ns      BIGINT [ns]     Lost part of affected_ns.
--   event_id     BIGINT          event_id of the annotation or call that marks the iteration with the largest loss.
WITH
    _measured AS MATERIALIZED (
        SELECT
            m.run, m.rank, m.event_id, m.phase, m.execution, m.device_ns, m.busy_ns, m.device_ts,
            coalesce((m.padded_tokens - m.new_tokens) / nullif(m.padded_tokens, 0), (m.padded_request_count - m.request_count) / nullif(m.padded_request_count, 0)) AS padded_share,
            m.device_ts + m.device_ns + m.unrecorded_ns AS device_end,
            lead(m.event_id) OVER (PARTITION BY m.run, m.rank ORDER BY m.device_ts, m.event_id) AS next_id
        FROM query_table(named_iterations) AS m
        WHERE m.device_ts IS NOT NULL
    ),
    _iterations AS MATERIALIZED (
        SELECT m.*
        FROM _measured AS m
        SEMI JOIN query_table(step_spans) AS w ON w.run = m.run AND w.rank = m.rank AND m.device_ts >= w.ts AND m.device_ts < w.end_ts
    ),
    _idle AS (
        SELECT i.run, i.rank, i.event_id, i.next_id, i.phase, i.execution, i.device_ns, p.ts < i.device_end AS is_inside, p.dur
        FROM (FROM query_table(parts) AS q WHERE q.waits_for <> 'unrecorded') AS p
        ASOF JOIN _measured AS i ON i.run = p.run AND i.rank = p.rank AND p.ts >= i.device_ts
    ),
    _decodes AS (
        SELECT i.run, i.rank, i.event_id, i.device_ns AS affected_ns, sum(i.dur)::BIGINT AS lost_ns
        FROM _idle AS i
        WHERE i.is_inside AND i.phase IN ('decode', 'speculative') AND i.execution = 'eager'
        GROUP BY ALL
    ),
    _gaps AS (
        SELECT i.run, i.rank, i.next_id AS event_id, sum(i.dur)::BIGINT AS lost_ns
        FROM _idle AS i
        WHERE NOT i.is_inside AND i.next_id IS NOT NULL
        GROUP BY i.run, i.rank, i.next_id
    ),
    _usual AS (
        SELECT i.run, i.rank, round(median(i.device_ns))::BIGINT AS decode_ns
        FROM _iterations AS i
        WHERE i.phase = 'decode'
        GROUP BY i.run, i.rank
    ),
    _losses AS (
        SELECT d.run, d.rank, 'eager_decode' AS kind, d.event_id, d.affected_ns, d.lost_ns FROM _decodes AS d
        UNION ALL
        SELECT g.run, g.rank, 'scheduling_gap', g.event_id, g.lost_ns, g.lost_ns FROM _gaps AS g WHERE g.lost_ns <= 50000000
        UNION ALL
        SELECT
            i.run, i.rank, 'graph_padding', i.event_id, i.device_ns,
            (i.busy_ns * i.padded_share)::BIGINT
        FROM _iterations AS i
        WHERE i.padded_share > 0 AND i.phase IN ('decode', 'speculative')
        UNION ALL
        SELECT i.run, i.rank, 'mixed_iterations', i.event_id, i.device_ns, i.device_ns - u.decode_ns
        FROM _iterations AS i
        JOIN _usual AS u ON u.run = i.run AND u.rank = i.rank
        WHERE i.phase = 'mixed' AND i.device_ns > u.decode_ns
    )
SELECT
    l.run AS run, l.rank AS rank, l.kind AS kind, count(*) AS event_count, sum(l.affected_ns)::BIGINT AS affected_ns,
    sum(l.lost_ns)::BIGINT AS lost_ns, arg_max(l.event_id, (l.lost_ns, -l.event_id)) AS event_id
FROM _losses AS l
GROUP BY l.run, l.rank, l.kind
