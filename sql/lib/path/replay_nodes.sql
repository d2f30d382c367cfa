-- Nodes of a replay: device operations with their launches, and calls in which the host waits for the device.
--
-- Times are on the clock shared by all ranks. A launch is taken to return at the end of its call, but no later than
-- its operation starts. Nodes are numbered in time order, so dependencies have lower numbers. A computation that
-- starts at the same time as other operations counts as later by `tolerance_ns`, because some recorders round times:
-- 0.5 % of the median computation, from 0.4 to 100 times the usual length of a launch.
-- In a run with matched collectives, ranks without matched collectives are excluded, because nothing connects them to
-- other ranks.
CREATE OR REPLACE MACRO lib.replay_nodes(
    runs
) AS TABLE
-- Columns:
--   run            VARCHAR         Run name.
--   rank           INTEGER         Rank of the process.
--   span           INTEGER         Recording of the rank.
--   node_id        BIGINT          Number of the node in its run, from 0, in the order of time.
--   kind           VARCHAR         operation (a device operation) or wait (a host call that waits).
--   event_id       BIGINT          event_id of the device operation or the call.
--   name           VARCHAR         Name of the operation or call.
--   name_id        BIGINT          Number that identifies the name, the kind of collective and the side of a transfer.
--   class          VARCHAR         computation, communication or memory; NULL for a call.
--   step           BIGINT          Profiler step of the launch; NULL outside steps, and for operations launched before the trace began.
--   stage          INTEGER         Pipeline stage; -1 without pipeline parallelism.
--   replica        INTEGER [1]     Data-parallel rank: the pipeline of the rank, or the rank itself without pipeline parallelism.
--   lane_id        BIGINT          Number of the device and stream; NULL for a call.
--   start_ns       BIGINT [ns]     Start of the operation or call.
--   end_ns         BIGINT [ns]     End of the operation.
--   call_ns        BIGINT [ns]     Start of the launch or of the waiting call; NULL if the launch is not in the trace.
--   return_ns      BIGINT [ns]     End of that launch or call.
--   queued_ns      BIGINT [ns]     return_ns; if the launch is missing, return_ns of the previous operation on the stream, or the start of the trace; start_ns if the rank has no launches.
--   key_ns         BIGINT [ns]     Sort key of the nodes.
--   tolerance_ns   BIGINT [ns]     Accuracy with which start and end times in the run agree.
--   launch_ns      BIGINT [ns]     Usual length of a launch in the run, the unit of thresholds (lib.launch_lengths).
--   begin_ns       BIGINT [ns]     Start of the rank's first step or first launch, whichever is earlier; start of the rank's first node if it has neither.
--   collective_id  BIGINT          Collective of the operation; NULL unless all its ranks were found.
--   rank_count     BIGINT [count]  Number of ranks of the collective.
--   channel_id     BIGINT          Channel of the collective (the group of ranks that share it).
--   is_send        BOOLEAN         Whether the node is the sending side of a transfer between two ranks.
--   elements       BIGINT [count]  Number of elements that the collective moves.
--   lag_ns         BIGINT [ns]     Time from the start of the collective's last rank to the end of this node.
--   transfer_ns    BIGINT [ns]     Time from the start of the collective's last rank to the collective's first end on any rank.
--   last_key_ns    BIGINT [ns]     For a collective, key_ns of the node with the highest key_ns; otherwise, key_ns of this node.
WITH
    _met AS MATERIALIZED (
        SELECT
            m.run, m.rank, m.span, m.event_id, m.collective_id, m.channel_id, m.collective, m.is_p2p, m.start_ns,
            m.end_ns, m.in_elems, m.clock_offset_ns, m.clock_drift, m.clock_mid_ts, m.clock_is_applied,
            m.is_complete AND NOT m.ended_before_last_start AND NOT m.on_host AS is_barrier
        FROM matched_collectives AS m
        WHERE lib.is_requested(runs, m.run)
    ),
    -- Ranks of a run without matched collectives do not wait for each other.
    _clocks AS MATERIALIZED (
        SELECT
            m.run, m.rank, m.span, any_value(m.clock_mid_ts) AS mid_ts,
            coalesce(any_value(CASE WHEN m.clock_is_applied THEN m.clock_offset_ns END), 0) AS ahead_ns,
            coalesce(any_value(CASE WHEN m.clock_is_applied THEN m.clock_drift END), 0) AS drift
        FROM _met AS m
        GROUP BY m.run, m.rank, m.span
        UNION ALL
        SELECT k.run, k.rank, k.span, 0, 0, 0
        FROM rank_spans AS k
        WHERE lib.is_requested(runs, k.run) AND NOT EXISTS (FROM _met AS m WHERE m.run = k.run)
    ),
    _barriers AS MATERIALIZED (
        SELECT
            m.run, m.rank, m.event_id, m.collective_id, count(*) OVER met AS found_count, m.channel_id, m.in_elems,
            CASE WHEN m.is_p2p THEN 'p2p' ELSE m.collective END AS what, m.collective = 'send' AS is_send,
            m.end_ns - max(m.start_ns) OVER met AS lag_ns, min(m.end_ns) OVER met - max(m.start_ns) OVER met AS transfer_ns
        FROM _met AS m
        WHERE m.is_barrier
        WINDOW met AS (PARTITION BY m.run, m.collective_id)
    ),
    _stages AS (
        SELECT DISTINCT p.run, p.rank, p.stage, p.pipeline FROM lib.pipeline_ranks(runs) AS p
    ),
    _begins AS (
        SELECT s.run, s.rank, s.span, min(s.ts) AS ts
        FROM steps AS s
        WHERE lib.is_requested(runs, s.run)
        GROUP BY s.run, s.rank, s.span
    ),
    _placed AS MATERIALIZED (
        SELECT
            g.run, g.rank, g.span, g.event_id, g.name, g.class, g.step, g.device, g.stream, g.dur,
            g.ts - c.ahead_ns - round(c.drift * (g.ts - c.mid_ts))::BIGINT AS start_ns,
            g.launch_ts - c.ahead_ns - round(c.drift * (g.launch_ts - c.mid_ts))::BIGINT AS call_ns,
            g.launch_dur
        FROM gpu_ops AS g
        JOIN _clocks AS c ON c.run = g.run AND c.rank = g.rank AND c.span = g.span
        WHERE g.class IN ('computation', 'communication', 'memory') AND NOT g.is_suspect
    ),
    _calls AS MATERIALIZED (
        SELECT
            b.run, b.rank, c.span, b.event_id, b.name,
            b.ts - c.ahead_ns - round(c.drift * (b.ts - c.mid_ts))::BIGINT AS start_ns,
            b.end_ts - c.ahead_ns - round(c.drift * (b.end_ts - c.mid_ts))::BIGINT AS end_ns
        FROM lib.blocking_calls(runs, NULL) AS b
        JOIN _clocks AS c ON c.run = b.run AND c.rank = b.rank AND c.span = lib.span_of(b.event_id)
    ),
    _scales AS MATERIALIZED (
        SELECT l.run, l.launch_ns, least(100 * l.launch_ns::HUGEINT, greatest(2 * l.launch_ns // 5, coalesce(d.dur // 200, 0)))::BIGINT AS tolerance_ns
        FROM (SELECT k.run, quantile_disc(k.launch_ns, 0.5) AS launch_ns FROM lib.launch_lengths(runs, NULL) AS k GROUP BY k.run) AS l
        LEFT JOIN (
            SELECT p.run, quantile_disc(p.dur, 0.5) AS dur FROM _placed AS p WHERE p.class = 'computation' GROUP BY p.run
        ) AS d ON d.run = l.run
    ),
    -- If no waiting call was recorded and the host is never ahead of a busy device, launch times are ignored and the
    -- host follows the device. Recorders that write launches so late do so on all ranks; a single such rank is
    -- host-bound.
    _silent AS (
        SELECT p.run, p.rank, p.span, median(p.ahead_ns) < 10 * any_value(s.launch_ns) AND avg(p.finds_busy::INTEGER) >= 0.3 AS follows_device
        FROM (
            SELECT
                o.run, o.rank, o.span, o.start_ns - o.call_ns - o.launch_dur AS ahead_ns,
                o.call_ns + o.launch_dur <= max(o.start_ns + o.dur)
                    OVER (PARTITION BY o.run, o.rank, o.span ORDER BY o.start_ns, o.event_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS finds_busy
            FROM _placed AS o
            WHERE NOT EXISTS (FROM _calls AS c WHERE c.run = o.run AND c.rank = o.rank AND contains(c.name, 'Synchronize'))
        ) AS p
        JOIN _scales AS s ON s.run = p.run
        GROUP BY p.run, p.rank, p.span
        QUALIFY avg(follows_device::INTEGER) OVER (PARTITION BY p.run) >= 0.8
    ),
    _lanes AS (
        SELECT d.*, row_number() OVER (ORDER BY d.device, d.stream) AS lane_id
        FROM (SELECT DISTINCT p.device, p.stream FROM _placed AS p) AS d
    ),
    _operations AS MATERIALIZED (
        SELECT
            p.run, p.rank, p.span, p.event_id, p.name, p.class, p.step, l.lane_id, p.start_ns, p.start_ns + p.dur AS end_ns,
            CASE WHEN s.run IS NULL AND p.call_ns IS NOT NULL THEN least(p.call_ns, p.start_ns) END AS call_ns,
            CASE WHEN s.run IS NULL AND p.call_ns IS NOT NULL THEN least(p.call_ns + p.launch_dur, p.start_ns) END AS return_ns,
            t.tolerance_ns, t.launch_ns,
            p.start_ns + CASE WHEN p.class = 'computation' THEN least(t.tolerance_ns, p.dur // 2) ELSE 0 END AS key_ns,
            b.collective_id, b.found_count, b.channel_id, b.in_elems, b.what, coalesce(b.is_send, false) AS is_send, b.lag_ns, b.transfer_ns
        FROM _placed AS p
        JOIN _lanes AS l ON l.device IS NOT DISTINCT FROM p.device AND l.stream IS NOT DISTINCT FROM p.stream
        JOIN _scales AS t ON t.run = p.run
        LEFT JOIN _silent AS s ON s.run = p.run AND s.rank = p.rank AND s.span = p.span AND s.follows_device
        LEFT JOIN _barriers AS b ON b.run = p.run AND b.rank = p.rank AND b.event_id = p.event_id
    ),
    _names AS MATERIALIZED (
        SELECT d.*, row_number() OVER (ORDER BY d.name, d.what, d.is_send) AS name_id
        FROM (
            SELECT DISTINCT o.name, o.what, o.is_send FROM _operations AS o
            UNION
            SELECT c.name, NULL, false FROM _calls AS c
        ) AS d
    ),
    _named AS MATERIALIZED (
        SELECT o.* EXCLUDE (name, what), n.name_id
        FROM _operations AS o
        JOIN _names AS n ON n.name = o.name AND n.what IS NOT DISTINCT FROM o.what AND n.is_send = o.is_send
    ),
    _waiting AS MATERIALIZED (
        SELECT w.* FROM lib.waiting_kernels(runs, '_clocks') AS w
    ),
    -- The time after the last arrival is work, not transfer.
    _meetings AS (
        SELECT
            o.run, o.rank, o.event_id, (SELECT coalesce(max(b.collective_id), 0) FROM _barriers AS b) + w.meeting_id AS collective_id,
            count(*) OVER (PARTITION BY w.meeting_id) AS found_count, o.end_ns - w.last_start_ns AS lag_ns
        FROM _waiting AS w
        JOIN _named AS o ON o.run = w.run AND o.rank = w.rank AND o.event_id = w.event_id
    ),
    _nodes AS MATERIALIZED (
        SELECT
            o.run, o.rank, o.span, 'operation' AS kind, o.event_id, o.name_id, o.class, o.step, o.lane_id, o.start_ns, o.end_ns, o.call_ns,
            o.return_ns, o.key_ns, o.tolerance_ns, o.launch_ns, coalesce(o.collective_id, m.collective_id) AS collective_id,
            coalesce(o.found_count, m.found_count) AS found_count, o.channel_id, o.is_send, o.in_elems,
            greatest(0, coalesce(o.lag_ns, m.lag_ns)) AS lag_ns, greatest(0, coalesce(o.transfer_ns, 0)) AS transfer_ns
        FROM _named AS o
        LEFT JOIN _meetings AS m ON m.run = o.run AND m.rank = o.rank AND m.event_id = o.event_id
        UNION ALL
        SELECT
            c.run, c.rank, c.span, 'wait', c.event_id, n.name_id, NULL, NULL, NULL, c.start_ns, c.end_ns, c.start_ns, c.end_ns, c.end_ns,
            coalesce(t.tolerance_ns, 1), coalesce(t.launch_ns, 1), NULL, NULL, NULL, false, NULL, NULL, NULL
        FROM _calls AS c
        JOIN _names AS n ON n.name = c.name AND n.what IS NULL AND NOT n.is_send
        LEFT JOIN _scales AS t ON t.run = c.run
    ),
    _last_keys AS (
        SELECT n.run, n.collective_id, max(n.key_ns) AS key_ns FROM _nodes AS n WHERE n.collective_id IS NOT NULL GROUP BY n.run, n.collective_id
    ),
    _queued AS (
        SELECT
            n.*, last_value(n.return_ns IGNORE NULLS) OVER (PARTITION BY n.run, n.rank, n.span, n.lane_id ORDER BY n.key_ns, n.start_ns, n.event_id) AS earlier_ns
        FROM _nodes AS n
    ),
    _firsts AS (
        SELECT
            n.run, n.rank, n.span, bool_or(n.kind = 'operation' AND n.return_ns IS NOT NULL) AS has_launches, any_value(coalesce(s.stage, -1)) AS stage, any_value(coalesce(s.pipeline, n.rank)) AS replica,
            least(coalesce(any_value(b.ts - c.ahead_ns - round(c.drift * (b.ts - c.mid_ts))::BIGINT), min(n.start_ns)), min(n.call_ns)) AS begin_ns
        FROM _nodes AS n
        JOIN _clocks AS c ON c.run = n.run AND c.rank = n.rank AND c.span = n.span
        LEFT JOIN _begins AS b ON b.run = n.run AND b.rank = n.rank AND b.span = n.span
        LEFT JOIN _stages AS s ON s.run = n.run AND s.rank = n.rank
        GROUP BY n.run, n.rank, n.span
    )
SELECT
    n.run, n.rank, n.span,
    row_number() OVER (PARTITION BY n.run ORDER BY n.key_ns, n.kind DESC, n.end_ns, n.rank, n.start_ns, n.event_id) - 1 AS node_id,
    n.kind, n.event_id, m.name, n.name_id, n.class,
    CASE WHEN n.earlier_ns IS NOT NULL OR n.return_ns IS NOT NULL OR NOT f.has_launches THEN n.step END AS step, f.stage::INTEGER AS stage, f.replica::INTEGER AS replica, n.lane_id,
    n.start_ns, n.end_ns, n.call_ns, n.return_ns,
    coalesce(n.return_ns, n.earlier_ns, CASE WHEN f.has_launches THEN least(f.begin_ns, n.start_ns) ELSE n.start_ns END) AS queued_ns,
    n.key_ns, n.tolerance_ns, n.launch_ns, f.begin_ns, n.collective_id, n.found_count AS rank_count,
    n.channel_id, n.is_send, n.in_elems AS elements, n.lag_ns, n.transfer_ns, coalesce(k.key_ns, n.key_ns) AS last_key_ns
FROM _queued AS n
JOIN _names AS m ON m.name_id = n.name_id
JOIN _firsts AS f ON f.run = n.run AND f.rank = n.rank AND f.span = n.span
LEFT JOIN _last_keys AS k ON k.run = n.run AND k.collective_id = n.collective_id
