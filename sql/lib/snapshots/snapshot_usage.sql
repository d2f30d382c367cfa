-- Memory in use after each event of the allocator in memory snapshots.
--
-- The first row, with a NULL event, contains the memory allocated before the history begins.
CREATE OR REPLACE MACRO lib.snapshot_usage(
    runs,
    ranks
) AS TABLE
-- Columns:
--   run              VARCHAR         Run name.
--   rank             INTEGER         Rank of the process.
--   device           BIGINT          Device number.
--   event_id         BIGINT          event_id of the event; NULL for the beginning.
--   time_ns          BIGINT [ns]     Unix time of the event.
--   allocated_bytes  BIGINT [bytes]  Memory in use after the event.
--   recorded_bytes   BIGINT [bytes]  Part of allocated_bytes whose allocation is in the history.
WITH
    _allocations AS MATERIALIZED (
        SELECT a.* FROM lib.snapshot_allocations(runs, ranks) AS a
    ),
    _changes AS (
        SELECT a.run, a.rank, a.device, a.alloc_event_id AS event_id, a.alloc_ns AS time_ns, a.bytes AS delta, CASE WHEN a.alloc_event_id IS NULL THEN 0 ELSE a.bytes END AS recorded
        FROM _allocations AS a
        UNION ALL
        SELECT a.run, a.rank, a.device, a.free_event_id, a.free_ns, -a.bytes, CASE WHEN a.alloc_event_id IS NULL THEN 0 ELSE -a.bytes END
        FROM _allocations AS a
        WHERE a.free_event_id IS NOT NULL
    ),
    _summed AS (
        SELECT c.run, c.rank, c.device, c.event_id, any_value(c.time_ns) AS time_ns, sum(c.delta) AS delta, sum(c.recorded) AS recorded
        FROM _changes AS c
        GROUP BY c.run, c.rank, c.device, c.event_id
    )
SELECT
    s.run,
    s.rank,
    s.device,
    s.event_id,
    s.time_ns,
    (sum(s.delta) OVER _until)::BIGINT AS allocated_bytes,
    (sum(s.recorded) OVER _until)::BIGINT AS recorded_bytes
FROM _summed AS s
WINDOW _until AS (PARTITION BY s.run, s.rank, s.device ORDER BY s.event_id NULLS FIRST ROWS UNBOUNDED PRECEDING)
