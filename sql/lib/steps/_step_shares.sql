-- Every nanosecond of given windows, assigned to one part and at most one device operation.
--
-- Concurrent activity counts once, with precedence in the order computation, transfer, unmatched communication, wait,
-- copies. Among operations of the same kind, the one that started first gets the time. A share is the time by which an operation extends the
-- busy time of its part while nothing with higher precedence runs: device self time. Idle time is assigned to the
-- operation that ends it. It is split at the end of the call that launches this operation: the host is responsible
-- for the time before the split, the device for the time after it. Intervals of `unrecorded_time` are not idle. The
-- shares of a window sum to the window.
--
-- One sweep computes a running total of time for each part. The share of an operation is the increase of its part's
-- total over the time that the operation adds to the part.
CREATE OR REPLACE MACRO lib._step_shares(
    -- Name of a relation with the columns of lib._compared_windows. Only run, rank, span, window_no, ts and end_ts
    -- are used. Windows of a rank do not overlap and are numbered in order.
    some_windows,
    runs,
    ranks
) AS TABLE
-- Columns:
--   run        VARCHAR         Run name.
--   rank       INTEGER         Rank of the process.
--   span       INTEGER         Recording of the rank.
--   window_no  BIGINT [1]      Number of the window.
--   part       VARCHAR         Part of the step: compute, transfer, unmatched, wait, memory, unrecorded or idle.
--   waits_for  VARCHAR         For idle time: host, device or unknown; otherwise NULL.
--   event_id   BIGINT          event_id of the operation; NULL for unrecorded time, and for idle time after the last operation.
--   ns         BIGINT [ns]     Share of the operation; 0 if it is fully overlapped.
--   dur_ns     BIGINT [ns]     Duration in the window, overlapped or not; 0 for idle time.
--   op_count   BIGINT [count]  1 if the operation (for a collective, its transfer) starts in the window; otherwise 0.
WITH
    _windows AS MATERIALIZED (
        SELECT w.run, w.rank, w.span, row_number() OVER (PARTITION BY w.run, w.rank, w.span ORDER BY w.window_no) AS position, w.window_no, w.ts, w.end_ts
        FROM query_table(some_windows) AS w
    ),
    _ops AS MATERIALIZED (
        SELECT
            g.run, g.rank, g.span, g.event_id, g.ts, g.ts + g.dur AS end_ts, g.launch_ts + g.launch_dur AS launch_end,
            CASE
                WHEN g.class = 'computation' THEN 1
                WHEN g.class <> 'communication' THEN 5
                WHEN lib.waits_are_known(m.found_count, m.end_times_match, m.is_p2p, m.on_host) THEN 2
                ELSE 3
            END AS part_no,
            m.wait_ns
        FROM lib.scoped_gpu_ops(runs, ranks, NULL, true) AS g
        LEFT JOIN matched_collectives AS m ON m.run = g.run AND m.rank = g.rank AND m.span = g.span AND m.event_id = g.event_id AND NOT m.on_host
        WHERE g.dur > 0
    ),
    _waits AS (
        SELECT o.* EXCLUDE (wait_ns), CASE WHEN o.part_no = 2 THEN coalesce(o.wait_ns, 0) ELSE 0 END AS wait_ns FROM _ops AS o
    ),
    -- A collective first waits and then transfers; it is counted at the transfer. If its waits are unknown, all of it is
    -- unmatched.
    _pieces AS (
        SELECT o.run, o.rank, o.span, o.event_id, o.part_no, o.ts + o.wait_ns AS ts, o.end_ts, true AS is_counted
        FROM _waits AS o
        WHERE o.end_ts > o.ts + o.wait_ns
        UNION ALL
        SELECT o.run, o.rank, o.span, o.event_id, 4, o.ts, o.ts + o.wait_ns, o.end_ts = o.ts + o.wait_ns
        FROM _waits AS o
        WHERE o.wait_ns > 0
    ),
    _marginal AS MATERIALIZED (
        SELECT
            p.*,
            least(greatest(p.ts, coalesce(max(p.end_ts) OVER earlier, p.ts)), p.end_ts) AS own_ts
        FROM _pieces AS p
        WINDOW earlier AS (
            PARTITION BY p.run, p.rank, p.span, p.part_no
            ORDER BY p.ts, p.end_ts DESC, p.event_id
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        )
    ),
    _unrecorded AS (
        SELECT u.run, u.rank, u.span, u.ts, u.dur
        FROM unrecorded_time AS u
        WHERE u.kind <> 'undecided' AND lib.is_requested(runs, u.run) AND lib.is_requested(ranks, u.rank)
    ),
    _bounds AS (
        SELECT p.run, p.rank, p.span, p.ts AS at_ts, p.part_no, 1 AS sign, 0 AS opens FROM _marginal AS p
        UNION ALL
        SELECT p.run, p.rank, p.span, p.end_ts, p.part_no, -1, 0 FROM _marginal AS p
        UNION ALL
        SELECT w.run, w.rank, w.span, w.ts, NULL, 0, 1 FROM _windows AS w
        UNION ALL
        SELECT w.run, w.rank, w.span, w.end_ts, NULL, 0, 0 FROM _windows AS w
        UNION ALL
        SELECT u.run, u.rank, u.span, u.ts, 6, 1, 0 FROM _unrecorded AS u
        UNION ALL
        SELECT u.run, u.rank, u.span, u.ts + u.dur, 6, -1, 0 FROM _unrecorded AS u
    ),
    _changes AS (
        SELECT
            b.run, b.rank, b.span, b.at_ts,
            sum(CASE WHEN b.part_no = 1 THEN b.sign ELSE 0 END) AS computing,
            sum(CASE WHEN b.part_no = 2 THEN b.sign ELSE 0 END) AS transferring,
            sum(CASE WHEN b.part_no = 3 THEN b.sign ELSE 0 END) AS unmatched,
            sum(CASE WHEN b.part_no = 4 THEN b.sign ELSE 0 END) AS waiting,
            sum(CASE WHEN b.part_no = 5 THEN b.sign ELSE 0 END) AS copying,
            sum(CASE WHEN b.part_no = 6 THEN b.sign ELSE 0 END) AS unrecorded,
            sum(b.opens) AS opens,
            max(CASE WHEN b.part_no < 6 THEN b.sign END) > 0 AS starts
        FROM _bounds AS b
        GROUP BY b.run, b.rank, b.span, b.at_ts
    ),
    _segments AS (
        SELECT
            c.run, c.rank, c.span, c.at_ts,
            lead(c.at_ts) OVER sweep - c.at_ts AS ns,
            sum(c.opens) OVER sweep AS position,
            CASE
                WHEN sum(c.computing) OVER sweep > 0 THEN 1
                WHEN sum(c.transferring) OVER sweep > 0 THEN 2
                WHEN sum(c.unmatched) OVER sweep > 0 THEN 3
                WHEN sum(c.waiting) OVER sweep > 0 THEN 4
                WHEN sum(c.copying) OVER sweep > 0 THEN 5
                WHEN sum(c.unrecorded) OVER sweep > 0 THEN 6
                ELSE 0
            END AS part_no,
            min(CASE WHEN c.starts THEN c.at_ts END) OVER later AS next_start
        FROM _changes AS c
        WINDOW
            sweep AS (PARTITION BY c.run, c.rank, c.span ORDER BY c.at_ts ROWS UNBOUNDED PRECEDING),
            later AS (PARTITION BY c.run, c.rank, c.span ORDER BY c.at_ts ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)
    ),
    -- Total time of each part before the segment.
    _sums AS MATERIALIZED (
        SELECT
            s.run, s.rank, s.span, s.at_ts, s.ns, s.position, s.part_no, s.next_start,
            coalesce(sum(CASE WHEN s.part_no = 1 THEN s.ns ELSE 0 END) OVER earlier, 0) AS computed,
            coalesce(sum(CASE WHEN s.part_no = 2 THEN s.ns ELSE 0 END) OVER earlier, 0) AS transferred,
            coalesce(sum(CASE WHEN s.part_no = 3 THEN s.ns ELSE 0 END) OVER earlier, 0) AS unmatched,
            coalesce(sum(CASE WHEN s.part_no = 4 THEN s.ns ELSE 0 END) OVER earlier, 0) AS waited,
            coalesce(sum(CASE WHEN s.part_no = 5 THEN s.ns ELSE 0 END) OVER earlier, 0) AS copied
        FROM _segments AS s
        WINDOW earlier AS (PARTITION BY s.run, s.rank, s.span ORDER BY s.at_ts ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
    ),
    -- Both bounds of a piece use one join with the sums; with two joins, the planner would form their product first.
    _ends AS (
        SELECT m.run, m.rank, m.span, m.event_id, m.part_no, m.ts AS at_ts FROM _marginal AS m
        UNION ALL
        SELECT m.run, m.rank, m.span, m.event_id, m.part_no, m.end_ts FROM _marginal AS m
    ),
    _spanned AS (
        SELECT e.run, e.rank, e.span, e.event_id, e.part_no, unnest(range(greatest(min(s.position), 1)::BIGINT, max(s.position)::BIGINT + 1)) AS position
        FROM _ends AS e
        JOIN _sums AS s ON s.run = e.run AND s.rank = e.rank AND s.span = e.span AND s.at_ts = e.at_ts
        GROUP BY e.run, e.rank, e.span, e.event_id, e.part_no
    ),
    _inside AS MATERIALIZED (
        SELECT
            m.run, m.rank, m.span, w.window_no, m.event_id, m.part_no,
            least(m.end_ts, w.end_ts) - greatest(m.ts, w.ts) AS dur_ns,
            m.is_counted AND m.ts >= w.ts AS starts,
            greatest(m.own_ts, w.ts) AS from_ts,
            greatest(least(m.end_ts, w.end_ts), m.own_ts, w.ts) AS to_ts
        FROM _spanned AS p
        JOIN _marginal AS m ON m.run = p.run AND m.rank = p.rank AND m.span = p.span AND m.event_id = p.event_id AND m.part_no = p.part_no
        JOIN _windows AS w ON w.run = p.run AND w.rank = p.rank AND w.span = p.span AND w.position = p.position
        WHERE m.ts < w.end_ts AND m.end_ts > w.ts
    ),
    _sides AS (
        SELECT i.run, i.rank, i.span, i.window_no, i.event_id, i.part_no, i.dur_ns, i.starts, i.to_ts AS at_ts, 1 AS sign FROM _inside AS i
        UNION ALL
        SELECT i.run, i.rank, i.span, i.window_no, i.event_id, i.part_no, i.dur_ns, i.starts, i.from_ts, -1 FROM _inside AS i
    ),
    _shared AS (
        SELECT
            d.run, d.rank, d.span, d.window_no, d.part_no, d.event_id, d.dur_ns, d.starts,
            sum(d.sign * CASE d.part_no WHEN 1 THEN s.computed WHEN 2 THEN s.transferred WHEN 3 THEN s.unmatched WHEN 4 THEN s.waited ELSE s.copied END)::BIGINT AS ns
        FROM _sides AS d
        JOIN _sums AS s ON s.run = d.run AND s.rank = d.rank AND s.span = d.span AND s.at_ts = d.at_ts
        GROUP BY ALL
    ),
    _idle AS (
        SELECT s.run, s.rank, s.span, w.window_no, s.part_no = 6 AS is_unrecorded, s.next_start, s.at_ts AS ts, s.at_ts + s.ns AS end_ts
        FROM _sums AS s
        JOIN _windows AS w ON w.run = s.run AND w.rank = s.rank AND w.span = s.span AND w.position = s.position AND s.at_ts < w.end_ts
        WHERE s.part_no IN (0, 6) AND s.ns > 0
    ),
    _first AS (
        SELECT o.run, o.rank, o.span, o.ts, arg_min({'id': o.event_id, 'launch_end': o.launch_end}, (o.end_ts, o.event_id)) AS op
        FROM _ops AS o
        GROUP BY o.run, o.rank, o.span, o.ts
    ),
    _caused AS (
        SELECT
            i.run, i.rank, i.span, i.window_no, i.is_unrecorded, f.op.id AS event_id, i.end_ts - i.ts AS ns, i.next_start,
            -- After the last operation, all idle time is attributed to the host.
            CASE WHEN i.next_start IS NULL THEN i.end_ts - i.ts ELSE greatest(least(f.op.launch_end, i.end_ts) - i.ts, 0) END AS host_ns,
            i.next_start IS NOT NULL AND f.op.launch_end IS NULL AS is_unknown
        FROM _idle AS i
        LEFT JOIN _first AS f ON f.run = i.run AND f.rank = i.rank AND f.span = i.span AND f.ts = i.next_start
    )
SELECT
    i.run, i.rank, i.span, i.window_no,
    CASE i.part_no WHEN 1 THEN 'compute' WHEN 2 THEN 'transfer' WHEN 3 THEN 'unmatched' WHEN 4 THEN 'wait' ELSE 'memory' END AS part,
    NULL::VARCHAR AS waits_for,
    i.event_id,
    i.ns,
    i.dur_ns,
    i.starts::BIGINT AS op_count
FROM _shared AS i
UNION ALL
SELECT c.run, c.rank, c.span, c.window_no, 'idle', CASE WHEN c.is_unknown THEN 'unknown' ELSE 'host' END, c.event_id, CASE WHEN c.is_unknown THEN c.ns ELSE c.host_ns END, 0, 0
FROM _caused AS c
WHERE NOT c.is_unrecorded AND (c.is_unknown OR c.host_ns > 0)
UNION ALL
SELECT c.run, c.rank, c.span, c.window_no, 'idle', 'device', c.event_id, c.ns - c.host_ns, 0, 0
FROM _caused AS c
WHERE NOT c.is_unrecorded AND NOT c.is_unknown AND c.ns > c.host_ns
UNION ALL
SELECT c.run, c.rank, c.span, c.window_no, 'unrecorded', NULL, NULL, c.ns, 0, 0
FROM _caused AS c
WHERE c.is_unrecorded
