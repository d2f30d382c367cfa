-- Time during which a device ran work that is not in the trace, or may have done so at the start of the recording.
--
-- Work is missing if it was launched before the recording, if records were lost, or if it was still running when the
-- recording ended.
--
-- No recorded operation runs in any of the returned intervals, and no two intervals of a rank overlap.
--
-- - before: a launched operation waits only for device work launched earlier, for a host callback, or for another
--   process. If an operation is queued while no recorded operation runs, unrecorded work is running. An operation
--   counts as queued if its wait exceeds 20 launches (lib.launch_lengths; about 100 µs) and five times the 99th
--   percentile of the rank's other waits. The threshold is needed because the host and device clocks of some recorders
--   differ by milliseconds. If the operation is the first recorded operation on its stream, the stream had been busy
--   since the start of the recording with work launched before the recording. An operation without a launch in the trace was launched before the first
--   recorded call if its correlation id is lower than that of every recorded call. If such an operation starts after
--   the first recorded call, it was queued from that call on; if it starts earlier, its queue time is unknown.
-- - lost: ten or more consecutive kernel launches outside graph captures have no kernel. The missing kernels ran
--   after the operations launched before them, and before the operations launched after them.
--   If the file of the recording is cut off, the records after the last recorded operation may be missing, too: the
--   device is not known to be idle from then on.
-- - after: the same as lost, but at the end of the recording, up to the end of the last device synchronization.
-- - undecided: time at the start of a recording that is not known to be unrecorded. It ends with the first launch or
--   with the end of the first synchronization with the whole device, whichever comes first. The device was either
--   idle or running earlier work.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO derived.unrecorded_time_v1(
    runs
) AS TABLE
-- Columns: those of unrecorded_time.
WITH
    recordings AS (
        SELECT k.run, k.rank, k.span, k.offset_ns AS ts, k.offset_ns + k.dur AS end_ts
        FROM rank_spans AS k
        WHERE k.event_count > 0 AND lib.is_requested(runs, k.run)
    ),
    ops AS MATERIALIZED (
        SELECT
            g.run, g.rank, g.span, g.event_id, g.ts, g.ts + g.dur AS end_ts, g.launch_id, g.launch_ts,
            g.launch_ts + g.launch_dur AS launch_end, g.correlation,
            row_number() OVER (PARTITION BY g.run, g.rank, g.span, g.device, g.stream ORDER BY g.ts, g.event_id) = 1 AS is_first_of_stream
        FROM gpu_ops AS g
        WHERE g.class <> 'sync' AND NOT g.is_suspect AND g.dur > 0 AND lib.is_requested(runs, g.run)
    ),
    -- For each start, the operation with the earliest launch among the operations that have not started yet.
    swept AS (
        SELECT
            o.run, o.rank, o.span, o.ts, o.launch_id, o.event_id, o.correlation,
            max(o.end_ts) OVER earlier AS ended,
            min(o.launch_end) OVER not_started AS launched_by,
            arg_min({'id': o.event_id, 'is_first_of_stream': o.is_first_of_stream}, (o.launch_end, o.ts, o.event_id)) OVER not_started AS queued
        FROM ops AS o
        WINDOW
            earlier AS (PARTITION BY o.run, o.rank, o.span ORDER BY o.ts, o.end_ts, o.event_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),
            not_started AS (PARTITION BY o.run, o.rank, o.span ORDER BY o.ts, o.end_ts, o.event_id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)
    ),
    gaps AS MATERIALIZED (
        SELECT
            s.run, s.rank, s.span, coalesce(s.ended, r.ts) AS ts, s.ts AS end_ts, s.ended IS NULL AS is_first,
            s.event_id, s.launch_id, s.correlation, s.queued, s.launched_by,
            greatest(s.ts - greatest(coalesce(s.ended, r.ts), s.launched_by), 0) AS blocked_ns
        FROM swept AS s
        JOIN recordings AS r ON r.run = s.run AND r.rank = s.rank AND r.span = s.span
        WHERE s.ts > coalesce(s.ended, r.ts)
    ),
    launch_lengths AS (
        FROM lib.launch_lengths(runs, NULL)
    ),
    usual AS (
        SELECT g.run, g.rank, quantile_cont(g.blocked_ns, 0.99) AS blocked_ns
        FROM gaps AS g
        WHERE NOT g.queued.is_first_of_stream AND g.blocked_ns > 0 AND g.blocked_ns < g.end_ts - g.ts
        GROUP BY g.run, g.rank
    ),
    first_calls AS (
        SELECT c.run, c.rank, c.span, min(c.correlation) AS correlation, min(c.ts) AS ts
        FROM runtime_calls AS c
        WHERE c.correlation > 0 AND lib.is_requested(runs, c.run)
        GROUP BY c.run, c.rank, c.span
    ),
    -- For each gap, whether an operation is queued behind earlier work, and whether the operation after the gap was
    -- launched before the first recorded call.
    judged_gaps AS (
        SELECT
            g.run, g.rank, g.span, g.end_ts, coalesce(g.queued.id, g.event_id) AS evidence_id, r.ts AS recording_ts, f.ts AS first_call_ts,
            g.queued.is_first_of_stream AND g.blocked_ns > greatest(20 * l.launch_ns, 5 * coalesce(u.blocked_ns, 0)) AS is_queued,
            g.is_first AND g.launch_id IS NULL AND g.correlation > 0 AND g.correlation < f.correlation AND g.end_ts > f.ts AS is_earlier
        FROM gaps AS g
        JOIN recordings AS r ON r.run = g.run AND r.rank = g.rank AND r.span = g.span
        JOIN launch_lengths AS l ON l.run = g.run AND l.rank = g.rank
        LEFT JOIN usual AS u ON u.run = g.run AND u.rank = g.rank
        LEFT JOIN first_calls AS f ON f.run = g.run AND f.rank = g.rank AND f.span = g.span
    ),
    -- Interval in which earlier work is known to have run.
    busy_before AS MATERIALIZED (
        SELECT
            j.run, j.rank, j.span, min(CASE WHEN j.is_queued THEN j.recording_ts ELSE j.first_call_ts END) AS from_ts,
            max(j.end_ts) AS until_ts, arg_max(j.evidence_id, j.end_ts) AS evidence_id
        FROM judged_gaps AS j
        WHERE j.is_queued OR j.is_earlier
        GROUP BY j.run, j.rank, j.span
    ),
    linked AS (
        SELECT DISTINCT g.run, g.rank, g.launch_id AS event_id
        FROM gpu_ops AS g
        WHERE g.launch_id IS NOT NULL AND g.class <> 'sync' AND lib.is_requested(runs, g.run)
    ),
    captures AS (
        SELECT
            c.run, c.rank, c.span, c.event_id, c.ts, c.ts + c.dur AS end_ts, contains(c.name, 'Launch') AS is_launch,
            sum(CASE WHEN contains(c.name, 'BeginCapture') THEN 1 WHEN contains(c.name, 'EndCapture') THEN -1 ELSE 0 END)
                OVER (PARTITION BY c.run, c.rank, c.span ORDER BY c.ts, c.event_id ROWS UNBOUNDED PRECEDING) > 0 AS is_captured
        FROM runtime_calls AS c
        WHERE regexp_matches(c.name, 'Launch|BeginCapture|EndCapture') AND lib.is_requested(runs, c.run)
    ),
    launches AS (
        SELECT c.run, c.rank, c.span, c.event_id, c.ts, c.end_ts, l.event_id IS NOT NULL AS has_ops
        FROM captures AS c
        LEFT JOIN linked AS l ON l.run = c.run AND l.rank = c.rank AND l.event_id = c.event_id
        WHERE c.is_launch AND NOT c.is_captured
    ),
    numbered AS (
        SELECT n.*, count_if(n.has_ops) OVER (PARTITION BY n.run, n.rank, n.span ORDER BY n.ts, n.event_id ROWS UNBOUNDED PRECEDING) AS stretch
        FROM launches AS n
    ),
    lost_launches AS (
        SELECT n.run, n.rank, n.span, min(n.ts) AS ts, min(n.end_ts) AS first_end, max(n.ts) AS last_ts, arg_min(n.event_id, (n.ts, n.event_id)) AS evidence_id, count(*) AS launch_count
        FROM numbered AS n
        WHERE NOT n.has_ops
        GROUP BY n.run, n.rank, n.span, n.stretch
        HAVING count(*) >= 10
    ),
    -- Operations and lost launches in launch order.
    marks AS (
        SELECT o.run, o.rank, o.span, o.launch_ts AS ts, o.event_id, o.ts AS from_ts, o.end_ts, NULL::BIGINT AS lost_from FROM ops AS o WHERE o.launch_ts IS NOT NULL
        UNION ALL
        SELECT l.run, l.rank, l.span, l.ts, -1, NULL, NULL, l.ts FROM lost_launches AS l
    ),
    bounded AS (
        SELECT
            m.run, m.rank, m.span, m.lost_from,
            max(m.end_ts) OVER (PARTITION BY m.run, m.rank, m.span ORDER BY m.ts, m.event_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS from_ts,
            min(m.from_ts) OVER (PARTITION BY m.run, m.rank, m.span ORDER BY m.ts, m.event_id ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS to_ts
        FROM marks AS m
    ),
    drained AS (
        SELECT c.run, c.rank, c.span, min(c.ts + c.dur) AS first_end, max(c.ts + c.dur) AS last_end, max(c.ts) AS last_ts
        FROM runtime_calls AS c
        WHERE regexp_matches(c.name, '(Device|Ctx)Synchronize') AND lib.is_requested(runs, c.run)
        GROUP BY c.run, c.rank, c.span
    ),
    tails AS (
        SELECT o.run, o.rank, o.span, max(o.end_ts) AS ts FROM ops AS o GROUP BY o.run, o.rank, o.span
    ),
    cut_tails AS MATERIALIZED (
        SELECT t.run, t.rank, t.span, t.ts, k.offset_ns + k.dur AS end_ts
        FROM tails AS t
        JOIN rank_spans AS k ON k.run = t.run AND k.rank = t.rank AND k.span = t.span
        WHERE EXISTS (
            FROM quarantine AS q
            WHERE q.run = k.run AND q.rank = k.rank AND q.source = k.source AND q.is_lost AND lib.is_rest_of_file(q.event_id, q.reason)
        )
    ),
    -- Launches of a rank without any recorded device activity do not count as lost.
    lost AS MATERIALIZED (
        SELECT
            l.run, l.rank, l.span, b.to_ts IS NULL AS is_after, l.evidence_id, l.launch_count,
            greatest(coalesce(b.from_ts, r.ts), l.first_end) AS ts,
            coalesce(b.to_ts, CASE WHEN d.last_ts > l.last_ts THEN d.last_end END, r.end_ts) AS end_ts
        FROM lost_launches AS l
        JOIN bounded AS b ON b.run = l.run AND b.rank = l.rank AND b.span = l.span AND b.lost_from = l.ts
        JOIN recordings AS r ON r.run = l.run AND r.rank = l.rank AND r.span = l.span
        LEFT JOIN drained AS d ON d.run = l.run AND d.rank = l.rank AND d.span = l.span
        WHERE
            EXISTS (FROM ops AS o WHERE o.run = l.run AND o.rank = l.rank AND o.span = l.span)
            AND NOT (b.to_ts IS NULL AND EXISTS (FROM cut_tails AS c WHERE c.run = l.run AND c.rank = l.rank AND c.span = l.span))
        UNION ALL
        SELECT c.run, c.rank, c.span, false, NULL, NULL, c.ts, c.end_ts FROM cut_tails AS c
    ),
    -- Of ranks that lost launches.
    idle AS (
        SELECT {'run': g.run, 'rank': g.rank, 'span': g.span} AS lane, g.ts, g.end_ts - g.ts AS dur
        FROM gaps AS g
        LEFT JOIN busy_before AS b ON b.run = g.run AND b.rank = g.rank AND b.span = g.span
        WHERE g.ts >= coalesce(b.until_ts, g.ts) AND EXISTS (FROM lost AS l WHERE l.run = g.run AND l.rank = g.rank AND l.span = g.span)
        UNION ALL
        SELECT {'run': t.run, 'rank': t.rank, 'span': t.span}, t.ts, r.end_ts - t.ts
        FROM tails AS t
        JOIN recordings AS r ON r.run = t.run AND r.rank = t.rank AND r.span = t.span
        WHERE r.end_ts > t.ts AND EXISTS (FROM lost AS l WHERE l.run = t.run AND l.rank = t.rank AND l.span = t.span)
    ),
    lost_windows AS (
        SELECT {'run': l.run, 'rank': l.rank, 'span': l.span} AS lane, l.ts, l.end_ts - l.ts AS dur FROM lost AS l WHERE l.end_ts > l.ts
    ),
    lost_pieces AS (
        SELECT p.lane.run AS run, p.lane.rank AS rank, p.lane.span AS span, p.ts, p.dur
        FROM lib.intersected_intervals('idle', 'lost_windows') AS p
    ),
    undecided AS (
        -- least ignores NULL, which occurs for ranks without launches or synchronizations.
        SELECT g.run, g.rank, g.span, g.ts, CASE WHEN b.until_ts IS NULL THEN least(g.end_ts, g.launched_by, d.first_end, l.ts) ELSE b.from_ts END AS end_ts
        FROM gaps AS g
        LEFT JOIN busy_before AS b ON b.run = g.run AND b.rank = g.rank AND b.span = g.span
        LEFT JOIN drained AS d ON d.run = g.run AND d.rank = g.rank AND d.span = g.span
        LEFT JOIN (SELECT w.run, w.rank, w.span, min(w.ts) AS ts FROM lost AS w GROUP BY ALL) AS l ON l.run = g.run AND l.rank = g.rank AND l.span = g.span
        WHERE g.is_first
    )
SELECT
    g.run, g.rank, g.span, greatest(g.ts, b.from_ts) AS ts, g.end_ts - greatest(g.ts, b.from_ts) AS dur,
    'before' AS kind, b.evidence_id, NULL::BIGINT AS launch_count
FROM gaps AS g
JOIN busy_before AS b ON b.run = g.run AND b.rank = g.rank AND b.span = g.span
WHERE g.end_ts <= b.until_ts AND g.end_ts > b.from_ts
UNION ALL
SELECT p.run, p.rank, p.span, p.ts, p.dur, CASE WHEN l.is_after THEN 'after' ELSE 'lost' END, l.evidence_id, l.launch_count
FROM lost_pieces AS p
ASOF JOIN lost AS l ON l.run = p.run AND l.rank = p.rank AND l.span = p.span AND p.ts >= l.ts
UNION ALL
SELECT u.run, u.rank, u.span, u.ts, u.end_ts - u.ts, 'undecided', NULL, NULL
FROM undecided AS u
WHERE u.end_ts > u.ts
