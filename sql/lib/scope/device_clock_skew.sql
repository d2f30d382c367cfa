-- Lead of each device's clock over the clock of the launching host.
--
-- A recorded device time is the host time plus the skew. No operation starts before the call that launches it, so the
-- skew is at most the shortest time from a launch to its operation. No synchronization returns before the awaited
-- operations have ended, so the skew is at least the longest time from the end of a synchronization to the recorded
-- end of an awaited operation. If 0 satisfies both bounds, the clocks are considered equal and the skew is 0.
-- Otherwise, the skew is the middle of the bounds, or the only bound if the other is unknown. A clock that drifts by
-- a few microseconds makes the bounds cross; their middle then has the smallest error. Bounds that cross by more than
-- 20 launches (lib.launch_lengths; about 100 us) come from wrong links and give no skew. Three kinds of synchronization are used. The first kind is a
-- recorded wait for a stream or a device (enable_cuda_sync_events). The second kind is a call that waits for the
-- device of a rank with a single device. The third kind is a call that waits for a stream directly after a copy; only
-- the copy counts as awaited.
CREATE OR REPLACE MACRO lib.device_clock_skew(
    runs,
    ranks
) AS TABLE
-- Columns:
--   run         VARCHAR      Run name.
--   rank        INTEGER      Rank of the process.
--   device      BIGINT       Device number, -1 if unknown.
--   lowest_ns   BIGINT [ns]  Lower bound of the skew; NULL without a usable synchronization.
--   highest_ns  BIGINT [ns]  Upper bound of the skew; NULL without a usable launch.
--   skew_ns     BIGINT [ns]  Lead of the device clock over the host clock; NULL if the bounds contradict each other.
WITH
    _ops AS MATERIALIZED (
        SELECT
            g.run, g.rank, g.span, coalesce(g.device, -1) AS device, g.stream, g.kind, g.class, g.launch_id, lower(g.sync_kind) AS sync_kind,
            g.ts, g.ts + greatest(g.dur, 0) AS end_ts, g.launch_ts, g.launch_ts + greatest(g.launch_dur, 0) AS returned_ts
        FROM gpu_ops AS g
        WHERE g.launch_id IS NOT NULL AND NOT g.is_suspect AND lib.is_requested(runs, g.run) AND lib.is_requested(ranks, g.rank)
    ),
    _single_devices AS (
        SELECT o.run, o.rank, min(o.device) AS device
        FROM _ops AS o
        GROUP BY o.run, o.rank
        HAVING min(o.device) = max(o.device)
    ),
    _call_names AS (
        SELECT
            n.name,
            regexp_matches(n.name, '(device|ctx|context)_?synchronize|synchronize_?device', 'i') AS waits_for_device,
            regexp_matches(n.name, 'stream_?synchronize|synchronize_?stream', 'i') AS waits_for_stream
        FROM (SELECT DISTINCT r.name FROM runtime_calls AS r WHERE lib.is_requested(runs, r.run) AND lib.is_requested(ranks, r.rank)) AS n
    ),
    _behind AS (
        SELECT
            r.run, r.rank, r.event_id, lead(r.name) OVER _thread AS next_name, lead(r.ts + greatest(r.dur, 0)) OVER _thread AS next_returned_ts
        FROM runtime_calls AS r
        WHERE lib.is_requested(runs, r.run) AND lib.is_requested(ranks, r.rank)
        WINDOW _thread AS (PARTITION BY r.run, r.rank, r.span, r.pid, r.tid ORDER BY r.ts, r.event_id)
    ),
    -- Stream NULL means all streams of the device.
    _calls AS (
        SELECT o.run, o.rank, o.span, o.device, CASE WHEN o.sync_kind = 'stream sync' THEN o.stream END AS stream, o.launch_ts AS ts, o.returned_ts
        FROM _ops AS o
        WHERE o.class = 'sync' AND o.sync_kind IN ('stream sync', 'context sync')
        UNION ALL
        SELECT r.run, r.rank, r.span, d.device, NULL, r.ts, r.ts + greatest(r.dur, 0)
        FROM runtime_calls AS r
        JOIN _single_devices AS d ON d.run = r.run AND d.rank = r.rank
        JOIN _call_names AS n ON n.name = r.name
        WHERE n.waits_for_device
    ),
    -- A sweep in time order with the running maximum of operation ends, because an ASOF join with few calls becomes a
    -- loop.
    _marks AS (
        SELECT o.run, o.rank, o.span, o.device, unnest([o.stream, NULL]) AS stream, o.returned_ts AS ts, o.end_ts, NULL::BIGINT AS waited_ts
        FROM _ops AS o
        SEMI JOIN _calls AS c ON c.run = o.run AND c.rank = o.rank AND c.device = o.device
        WHERE o.class <> 'sync'
        UNION ALL
        SELECT c.run, c.rank, c.span, c.device, c.stream, c.ts, NULL, c.returned_ts
        FROM _calls AS c
    ),
    _waits AS (
        SELECT
            m.run, m.rank, m.device, m.waited_ts,
            max(m.end_ts) OVER (
                PARTITION BY m.run, m.rank, m.span, m.device, m.stream ORDER BY m.ts, m.waited_ts NULLS FIRST ROWS UNBOUNDED PRECEDING
            ) AS awaited_ts
        FROM _marks AS m
    ),
    _bounds AS (
        SELECT w.run, w.rank, w.device, w.awaited_ts - w.waited_ts AS lowest, NULL::BIGINT AS highest
        FROM _waits AS w
        WHERE w.waited_ts IS NOT NULL
        UNION ALL
        SELECT o.run, o.rank, o.device, o.end_ts - b.next_returned_ts, NULL
        FROM _ops AS o
        JOIN _behind AS b ON b.run = o.run AND b.rank = o.rank AND b.event_id = o.launch_id
        JOIN _call_names AS n ON n.name = b.next_name
        WHERE o.kind = 'memcpy' AND n.waits_for_stream
        UNION ALL
        SELECT o.run, o.rank, o.device, NULL, o.ts - o.launch_ts
        FROM _ops AS o
        WHERE o.class <> 'sync'
    ),
    _bounded AS (
        SELECT b.run, b.rank, b.device, max(b.lowest) AS lowest, min(b.highest) AS highest
        FROM _bounds AS b
        GROUP BY b.run, b.rank, b.device
    )
SELECT
    b.run,
    b.rank,
    b.device,
    b.lowest AS lowest_ns,
    b.highest AS highest_ns,
    CASE
        WHEN b.lowest > b.highest + 20 * l.launch_ns THEN NULL
        WHEN coalesce(b.lowest, 0) <= 0 AND coalesce(b.highest, 0) >= 0 THEN 0
        ELSE coalesce((b.lowest + b.highest) // 2, b.lowest, b.highest)
    END AS skew_ns
FROM _bounded AS b
LEFT JOIN lib.launch_lengths(runs, ranks) AS l ON l.run = b.run AND l.rank = b.rank
