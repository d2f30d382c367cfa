-- Highest totals reported by the allocator of each device, and the event at which each was first reached.
CREATE OR REPLACE MACRO lib.memory_peaks(
    runs,
    ranks,
    steps,
    -- Whether to return one row per step.
    by_step
) AS TABLE
-- Columns:
--   run                   VARCHAR         Run name.
--   rank                  INTEGER         Rank of the process.
--   device_type           INTEGER         Device type as torch numbers it: 0 CPU, 1 CUDA or ROCm.
--   device                BIGINT          Device number; -1: CPU.
--   step                  BIGINT          Profiler step; NULL without by_step, and outside steps.
--   peak_allocated_bytes  BIGINT [bytes]  Highest allocated total; NULL if totals are not recorded.
--   peak_reserved_bytes   BIGINT [bytes]  Highest reserved total; NULL if nothing is reserved, as on the host.
--   peak_ts               BIGINT [ns]     Time at which the allocated total first reached its peak, relative to the run's first event.
--   peak_id               BIGINT          event_id of that memory event.
--   peak_position         BIGINT [1]      Position of that event among memory events with the same time, by profiler_event_index.
--   before_bytes          BIGINT [bytes]  Allocated total before the first event in scope.
--   end_bytes             BIGINT [bytes]  Allocated total after the last event in scope.
--   grown_unused_bytes    BIGINT [bytes]  Reserved minus allocated total when the reserved total first grew to its peak; NULL if it never grew.
--   reserved_peak_id      BIGINT          event_id of the first event with the highest reserved total.
--   event_count           BIGINT [count]  Number of memory events.
--   capacity_bytes        BIGINT [bytes]  Device memory; NULL if unknown.
WITH
    _peaks AS (
        SELECT
            m.run, m.rank, m.device_type, m.device, CASE WHEN by_step THEN m.step END AS step,
            max(m.total_allocated_bytes) AS allocated,
            nullif(max(m.total_reserved_bytes), 0) AS reserved,
            -- In a tuple, NULL compares greater than any number.
            arg_max(
                {'ts': m.ts, 'id': m.event_id, 'position': coalesce(m.profiler_event_index, 0)},
                (m.total_allocated_bytes, -m.ts, -coalesce(m.profiler_event_index, 0), -m.event_id)
            ) FILTER (m.total_allocated_bytes IS NOT NULL) AS top,
            arg_max(
                {'id': m.event_id, 'unused': m.total_reserved_bytes - m.total_allocated_bytes},
                (m.total_reserved_bytes, -m.ts, -coalesce(m.profiler_event_index, 0), -m.event_id)
            ) FILTER (m.total_reserved_bytes > 0) AS widest,
            count(*) AS event_count,
            arg_min(
                {'before': m.total_allocated_bytes - m.bytes, 'reserved': m.total_reserved_bytes},
                (m.ts, coalesce(m.profiler_event_index, 0), m.event_id)
            ) AS first,
            arg_max(m.total_allocated_bytes, (m.ts, coalesce(m.profiler_event_index, 0), m.event_id)) AS last
        FROM memory_events AS m
        WHERE lib.is_requested(runs, m.run) AND lib.is_requested(ranks, m.rank) AND lib.is_requested(steps, m.step)
        GROUP BY ALL
    ),
    _capacities AS (
        SELECT d.run, d.rank, d.device, any_value(d.total_memory_bytes) AS capacity
        FROM devices AS d
        GROUP BY d.run, d.rank, d.device
    )
SELECT
    p.run,
    p.rank,
    p.device_type,
    p.device,
    p.step,
    p.allocated AS peak_allocated_bytes,
    p.reserved AS peak_reserved_bytes,
    p.top.ts AS peak_ts,
    p.top.id AS peak_id,
    p.top.position AS peak_position,
    p.first.before AS before_bytes,
    p.last AS end_bytes,
    CASE WHEN p.first.reserved < p.reserved THEN p.widest.unused END AS grown_unused_bytes,
    p.widest.id AS reserved_peak_id,
    p.event_count AS event_count,
    c.capacity AS capacity_bytes
FROM _peaks AS p
LEFT JOIN _capacities AS c ON p.device_type <> 0 AND c.run = p.run AND c.rank = p.rank AND c.device = p.device
