-- Memory in use over the history of memory snapshots, with the peak and each out-of-memory error.
--
-- The history is divided into spans with equal numbers of events; each span has a row for the event with the most
-- memory in use. Each out-of-memory event has its own row.
--
-- Title: Memory over time in the snapshot
-- Shown: rank, time_ns, allocated_bytes, is_peak, is_oom, failed_bytes, device
-- Status: stable
-- Since: 0.1
-- Scope: runs, ranks; a snapshot has no steps
-- Reference: torch.cuda._memory_viz.trace_plot
-- Needs: memory snapshots with their history (torch.cuda.memory._record_memory_history)
-- Report: first 4; chart; at most 16 ranks; if snapshot_blocks or snapshot_events or snapshot_segments
CREATE OR REPLACE MACRO snapshot_curve_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    -- Number of spans into which the history of each device is divided.
    span_count BIGINT := 1000
) AS TABLE
-- Columns:
--   run              VARCHAR         Run name.
--   rank             INTEGER         Rank of the process.
--   device           BIGINT          Device number.
--   event_id         BIGINT          event_id of the allocator event; NULL for the beginning of the history.
--   time_ns          BIGINT [ns]     Unix time of the event; NULL in snapshots of early versions of torch.
--   allocated_bytes  BIGINT [bytes]  Memory in use after the event.
--   recorded_bytes   BIGINT [bytes]  Part of allocated_bytes whose allocation is in the history.
--   is_peak          BOOLEAN         Whether this is the first event with the most memory in use.
--   is_oom           BOOLEAN         Whether this is an out-of-memory event.
--   failed_bytes     BIGINT [bytes]  Size of the failed request; NULL for other events.
WITH
    usage AS MATERIALIZED (
        SELECT u.*, ntile(span_count) OVER (PARTITION BY u.run, u.rank, u.device ORDER BY u.event_id NULLS FIRST) AS span
        FROM lib.snapshot_usage(runs, ranks) AS u
    ),
    tops AS (
        SELECT u.*
        FROM usage AS u
        QUALIFY row_number() OVER (PARTITION BY u.run, u.rank, u.device, u.span ORDER BY u.allocated_bytes DESC, u.event_id NULLS FIRST) = 1
    ),
    marked AS (
        SELECT t.*, row_number() OVER (PARTITION BY t.run, t.rank, t.device ORDER BY t.allocated_bytes DESC, t.event_id NULLS FIRST) = 1 AS is_top
        FROM tops AS t
    ),
    ooms AS (
        SELECT o.run, o.rank, o.device, o.event_id, o.time_ns, o.bytes, max_by({'allocated': u.allocated_bytes, 'recorded': u.recorded_bytes}, coalesce(u.event_id, -1)) AS usage
        FROM snapshot_events AS o
        LEFT JOIN usage AS u ON u.run = o.run AND u.rank = o.rank AND u.device = o.device AND coalesce(u.event_id, -1) < o.event_id
        WHERE o.action = 'oom' AND lib.is_requested(runs, o.run) AND lib.is_requested(ranks, o.rank)
        GROUP BY o.run, o.rank, o.device, o.event_id, o.time_ns, o.bytes
    ),
    points AS (
        SELECT m.run, m.rank, m.device, m.event_id, m.time_ns, m.allocated_bytes AS allocated, m.recorded_bytes AS recorded, m.is_top, false AS is_failed, NULL::BIGINT AS failed
        FROM marked AS m
        UNION ALL
        SELECT o.run, o.rank, o.device, o.event_id, o.time_ns, coalesce(o.usage.allocated, 0), coalesce(o.usage.recorded, 0), false, true, o.bytes
        FROM ooms AS o
    )
SELECT
    p.run,
    p.rank,
    p.device,
    p.event_id,
    p.time_ns,
    p.allocated AS allocated_bytes,
    p.recorded AS recorded_bytes,
    p.is_top AS is_peak,
    p.is_failed AS is_oom,
    p.failed AS failed_bytes
FROM points AS p
ORDER BY p.run, p.rank, p.device, p.event_id NULLS FIRST, p.is_failed
