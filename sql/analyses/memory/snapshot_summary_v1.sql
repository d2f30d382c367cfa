-- Memory of each device in a memory snapshot: reserved, allocated and free, with the peak of the history.
--
-- Reserved memory is the total size of all segments: allocated blocks, blocks that wait for another stream, free
-- blocks, and space that no block covers. Free blocks in a segment that also has blocks in use (inactive split) are
-- fragmentation: they cannot be returned to the device. The peak is the maximum over the snapshot's history and
-- includes memory allocated before the history begins.
--
-- Most columns describe the state when the snapshot was written. Columns that start with oom_ describe the state at
-- the last out-of-memory error. If oom_failed_bytes is less than oom_unallocated_bytes, no single free block was large
-- enough.
--
-- Title: Memory in the snapshot
-- Shown: rank, reserved_bytes, allocated_bytes, inactive_split_pct, peak_bytes, oom_failed_bytes, oom_unallocated_bytes, oom_reserved_bytes, oom_count, device
-- Status: stable
-- Since: 0.1
-- Scope: runs, ranks; a snapshot has no steps
-- Reference: torch.cuda._memory_viz.segsum, torch.cuda.memory_stats, facebookresearch/mosaic
-- Needs: memory snapshots (torch.cuda.memory._dump_snapshot); the peak needs torch.cuda.memory._record_memory_history
-- Report: first 7; table; at most 64 ranks; if snapshot_blocks or snapshot_events or snapshot_segments
CREATE OR REPLACE MACRO snapshot_summary_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL
) AS TABLE
-- Columns:
--   run                    VARCHAR         Run name.
--   rank                   INTEGER         Rank of the process.
--   device                 BIGINT          Device number.
--   reserved_bytes         BIGINT [bytes]  Memory in segments, which the allocator reserved from the device.
--   allocated_bytes        BIGINT [bytes]  Memory in allocated blocks.
--   requested_bytes        BIGINT [bytes]  Requested size of the allocated blocks, before rounding.
--   pending_bytes          BIGINT [bytes]  Freed blocks that wait for another stream.
--   inactive_bytes         BIGINT [bytes]  Free blocks.
--   inactive_split_bytes   BIGINT [bytes]  Free blocks in segments that are not entirely free.
--   uncovered_bytes        BIGINT [bytes]  Parts of segments that no block covers.
--   inactive_split_pct     DOUBLE [%]      inactive_split_bytes as a share of reserved_bytes; NULL without segments.
--   largest_free_bytes     BIGINT [bytes]  Largest free block; a larger request needs a new segment.
--   segment_count          BIGINT [count]  Number of segments.
--   block_count            BIGINT [count]  Number of blocks.
--   event_count            BIGINT [count]  Number of allocator events in the snapshot's history.
--   oom_count              BIGINT [count]  Number of out-of-memory events in the history.
--   oom_failed_bytes       BIGINT [bytes]  Size of the request that failed at the last out-of-memory error; NULL if there is none.
--   oom_reserved_bytes     BIGINT [bytes]  Memory in segments at the last out-of-memory error; NULL if there is none.
--   oom_unallocated_bytes  BIGINT [bytes]  Memory reserved but not in use at the last out-of-memory error, including rounding; NULL if there is none.
--   held_before_bytes      BIGINT [bytes]  Memory allocated before the history begins and still in use at its end.
--   peak_bytes             BIGINT [bytes]  Most memory in use at any time in the history.
--   peak_event_id          BIGINT          event_id of the event that first reached the peak; NULL if the peak is at the beginning.
--   peak_ns                BIGINT [ns]     Unix time of the peak.
--   recorded_peak_bytes    BIGINT [bytes]  Most memory in use at any time by blocks whose allocation is in the history.
--   first_ns               BIGINT [ns]     Unix time of the first event.
--   last_ns                BIGINT [ns]     Unix time of the last event.
WITH
    blocks AS MATERIALIZED (
        SELECT b.*, max(b.state <> 'inactive') OVER (PARTITION BY b.run, b.rank, b.segment_id) AS is_split
        FROM snapshot_blocks AS b
        WHERE lib.is_requested(runs, b.run) AND lib.is_requested(ranks, b.rank)
    ),
    by_block AS (
        SELECT
            b.run, b.rank, b.device, count(*) AS block_count, sum(b.bytes) AS bytes,
            sum(b.bytes) FILTER (b.state = 'active_allocated') AS allocated,
            sum(b.requested_bytes) FILTER (b.state = 'active_allocated') AS requested,
            sum(b.bytes) FILTER (b.state = 'inactive') AS inactive,
            sum(b.bytes) FILTER (b.state = 'inactive' AND b.is_split) AS split,
            max(b.bytes) FILTER (b.state = 'inactive') AS largest
        FROM blocks AS b
        GROUP BY b.run, b.rank, b.device
    ),
    by_segment AS (
        SELECT s.run, s.rank, s.device, count(*) AS segment_count, sum(s.bytes) AS reserved
        FROM snapshot_segments AS s
        WHERE lib.is_requested(runs, s.run) AND lib.is_requested(ranks, s.rank)
        GROUP BY s.run, s.rank, s.device
    ),
    by_event AS (
        SELECT
            e.run, e.rank, e.device, count(*) AS event_count, count_if(e.action = 'oom')::BIGINT AS oom_count, min(e.time_ns) AS first_ns, max(e.time_ns) AS last_ns,
            max_by({'event_id': e.event_id, 'bytes': e.bytes}, e.event_id) FILTER (e.action = 'oom') AS oom
        FROM snapshot_events AS e
        WHERE lib.is_requested(runs, e.run) AND lib.is_requested(ranks, e.rank)
        GROUP BY e.run, e.rank, e.device
    ),
    usage AS MATERIALIZED (
        SELECT u.* FROM lib.snapshot_usage(runs, ranks) AS u
    ),
    -- Memory in use at the last out-of-memory error, and change in reserved memory after the error.
    at_oom AS (
        SELECT o.run, o.rank, o.device, max_by(u.allocated_bytes, coalesce(u.event_id, -1)) AS in_use
        FROM by_event AS o
        LEFT JOIN usage AS u ON u.run = o.run AND u.rank = o.rank AND u.device = o.device AND coalesce(u.event_id, -1) < o.oom.event_id
        WHERE o.oom IS NOT NULL
        GROUP BY o.run, o.rank, o.device
    ),
    after_oom AS (
        SELECT
            e.run, e.rank, e.device,
            sum(CASE WHEN e.action IN ('segment_alloc', 'segment_map') THEN e.bytes ELSE -e.bytes END) AS reserved
        FROM snapshot_events AS e
        JOIN by_event AS o ON o.run = e.run AND o.rank = e.rank AND o.device = e.device AND e.event_id > o.oom.event_id
        WHERE e.action IN ('segment_alloc', 'segment_map', 'segment_free', 'segment_unmap')
        GROUP BY e.run, e.rank, e.device
    ),
    peaks AS (
        SELECT
            u.run, u.rank, u.device, max(u.recorded_bytes) AS recorded_peak,
            max_by({'bytes': u.allocated_bytes, 'event_id': u.event_id, 'time_ns': u.time_ns}, (u.allocated_bytes, -coalesce(u.event_id, -1))) AS peak
        FROM usage AS u
        GROUP BY u.run, u.rank, u.device
    ),
    before AS (
        SELECT a.run, a.rank, a.device, sum(a.bytes) AS bytes
        FROM lib.snapshot_allocations(runs, ranks) AS a
        WHERE a.alloc_event_id IS NULL AND a.free_event_id IS NULL
        GROUP BY a.run, a.rank, a.device
    ),
    devices_seen AS (
        SELECT s.run, s.rank, s.device FROM by_segment AS s
        UNION
        SELECT e.run, e.rank, e.device FROM by_event AS e
    )
SELECT
    d.run,
    d.rank,
    d.device,
    coalesce(s.reserved, 0)::BIGINT AS reserved_bytes,
    coalesce(b.allocated, 0)::BIGINT AS allocated_bytes,
    coalesce(b.requested, 0)::BIGINT AS requested_bytes,
    (coalesce(b.bytes, 0) - coalesce(b.allocated, 0) - coalesce(b.inactive, 0))::BIGINT AS pending_bytes,
    coalesce(b.inactive, 0)::BIGINT AS inactive_bytes,
    coalesce(b.split, 0)::BIGINT AS inactive_split_bytes,
    (coalesce(s.reserved, 0) - coalesce(b.bytes, 0))::BIGINT AS uncovered_bytes,
    100.0 * coalesce(b.split, 0) / nullif(s.reserved, 0) AS inactive_split_pct,
    coalesce(b.largest, 0)::BIGINT AS largest_free_bytes,
    coalesce(s.segment_count, 0)::BIGINT AS segment_count,
    coalesce(b.block_count, 0)::BIGINT AS block_count,
    coalesce(e.event_count, 0)::BIGINT AS event_count,
    coalesce(e.oom_count, 0)::BIGINT AS oom_count,
    e.oom.bytes AS oom_failed_bytes,
    CASE WHEN e.oom IS NOT NULL THEN (coalesce(s.reserved, 0) - coalesce(a.reserved, 0))::BIGINT END AS oom_reserved_bytes,
    CASE WHEN e.oom IS NOT NULL THEN (coalesce(s.reserved, 0) - coalesce(a.reserved, 0) - coalesce(m.in_use, 0))::BIGINT END AS oom_unallocated_bytes,
    coalesce(x.bytes, 0)::BIGINT AS held_before_bytes,
    coalesce(p.peak.bytes, 0)::BIGINT AS peak_bytes,
    p.peak.event_id AS peak_event_id,
    p.peak.time_ns AS peak_ns,
    coalesce(p.recorded_peak, 0)::BIGINT AS recorded_peak_bytes,
    e.first_ns,
    e.last_ns
FROM devices_seen AS d
LEFT JOIN by_segment AS s ON s.run = d.run AND s.rank = d.rank AND s.device = d.device
LEFT JOIN by_block AS b ON b.run = d.run AND b.rank = d.rank AND b.device = d.device
LEFT JOIN by_event AS e ON e.run = d.run AND e.rank = d.rank AND e.device = d.device
LEFT JOIN peaks AS p ON p.run = d.run AND p.rank = d.rank AND p.device = d.device
LEFT JOIN at_oom AS m ON m.run = d.run AND m.rank = d.rank AND m.device = d.device
LEFT JOIN after_oom AS a ON a.run = d.run AND a.rank = d.rank AND a.device = d.device
LEFT JOIN before AS x ON x.run = d.run AND x.rank = d.rank AND x.device = d.device
ORDER BY d.run, d.rank, d.device
