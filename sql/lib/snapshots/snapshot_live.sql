-- Memory in use at selected moments of memory snapshots: at the peak, at out-of-memory events, and at the end.
CREATE OR REPLACE MACRO lib.snapshot_live(
    runs,
    ranks,
    -- Number of most recent out-of-memory errors to include per device.
    last_ooms
) AS TABLE
-- Columns:
--   run              VARCHAR         Run name.
--   rank             INTEGER         Rank of the process.
--   device           BIGINT          Device number.
--   moment           VARCHAR         peak, oom or end.
--   moment_id        BIGINT          event_id of the event at this moment; NULL for the beginning and the end of the history.
--   moment_ns        BIGINT [ns]     Unix time of the moment.
--   requested_bytes  BIGINT [bytes]  Size of the failed request; NULL for other moments.
--   device_free_bytes  BIGINT [bytes]  Free memory of the device at an out-of-memory event; NULL for other moments.
--   stack_id         BIGINT          Stack that allocated the block; NULL if unknown.
--   is_recorded      BOOLEAN         Whether the allocation is in the history.
--   bytes            BIGINT [bytes]  Size of the block.
--   alloc_event_id   BIGINT          Allocating event; NULL if the block was allocated before the history begins.
WITH
    _allocations AS MATERIALIZED (
        SELECT a.* FROM lib.snapshot_allocations(runs, ranks) AS a
    ),
    _peaks AS (
        SELECT
            u.run, u.rank, u.device,
            max_by({'event_id': u.event_id, 'time_ns': u.time_ns}, (u.allocated_bytes, -coalesce(u.event_id, -1))) AS peak
        FROM lib.snapshot_usage(runs, ranks) AS u
        GROUP BY u.run, u.rank, u.device
    ),
    _ooms AS (
        SELECT e.*
        FROM snapshot_events AS e
        WHERE e.action = 'oom' AND lib.is_requested(runs, e.run) AND lib.is_requested(ranks, e.rank)
        QUALIFY row_number() OVER (PARTITION BY e.run, e.rank, e.device ORDER BY e.event_id DESC) <= last_ooms
    ),
    _moments AS (
        SELECT
            p.run, p.rank, p.device, 'peak' AS moment, p.peak.event_id AS moment_id, coalesce(p.peak.event_id, -1) AS position, p.peak.time_ns AS moment_ns,
            NULL::BIGINT AS requested_bytes, NULL::BIGINT AS device_free_bytes
        FROM _peaks AS p
        UNION ALL
        SELECT o.run, o.rank, o.device, 'oom', o.event_id, o.event_id, o.time_ns, o.bytes, o.device_free_bytes FROM _ooms AS o
        UNION ALL
        SELECT p.run, p.rank, p.device, 'end', NULL, 9223372036854775806, NULL, NULL, NULL FROM _peaks AS p
    )
SELECT
    m.run,
    m.rank,
    m.device,
    m.moment,
    m.moment_id,
    m.moment_ns,
    m.requested_bytes,
    m.device_free_bytes,
    a.stack_id,
    a.alloc_event_id IS NOT NULL AS is_recorded,
    a.bytes,
    a.alloc_event_id
FROM _moments AS m
JOIN _allocations AS a
    ON a.run = m.run AND a.rank = m.rank AND a.device = m.device
    AND coalesce(a.alloc_event_id, -1) <= m.position AND coalesce(a.free_event_id, 9223372036854775807) > m.position
