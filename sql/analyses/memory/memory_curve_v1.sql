-- Memory in use over time on each device, downsampled without losing peaks.
--
-- Each point is a recorded event; its totals hold until the next event. If there are more than max_points events, each
-- time slice keeps its first and last event, its lowest and highest allocated total, and its highest reserved total.
-- The peak in memory_peaks is therefore always included.
--
-- Title: Memory over time
-- Shown: rank, device_label, ts, step, allocated_bytes, reserved_bytes, is_peak, capacity_bytes
-- Status: stable
-- Since: 0.1
-- Scope: runs, ranks, steps; memory totals are valid in the last step too
-- Reference: TensorBoard profiler plugin, memory curve
-- Needs: memory events (profile_memory=True)
-- Report: first 1; chart; at most 64 ranks; if memory_events
CREATE OR REPLACE MACRO memory_curve_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    -- Profiler steps to include; NULL means every step, including the last one, and all activity outside steps.
    steps BIGINT[] := NULL,
    -- Maximum number of points per device, at least 5; NULL: every event.
    max_points BIGINT := 2000
) AS TABLE
-- Columns:
--   run              VARCHAR         Run name.
--   rank             INTEGER         Rank of the process.
--   device_type      INTEGER         Device type as torch numbers it: 0 CPU, 1 CUDA or ROCm.
--   device           BIGINT          Device number; -1: CPU.
--   device_label     VARCHAR         Name of the device: CPU, or GPU with its number; NULL if not recorded.
--   ts               BIGINT [ns]     Time since the run's first event.
--   event_id         BIGINT          event_id of the memory event.
--   step             BIGINT          Profiler step; NULL outside steps.
--   allocated_bytes  BIGINT [bytes]  Allocated total after the event; NULL if totals are not recorded.
--   reserved_bytes   BIGINT [bytes]  Reserved total after the event; NULL if nothing is reserved, as on the host.
--   is_peak          BOOLEAN         Whether the allocated total first reaches its maximum here.
--   capacity_bytes   BIGINT [bytes]  Device memory; NULL if unknown.
WITH
    peaks AS MATERIALIZED (
        SELECT
            p.run, p.rank, p.device_type, p.device, p.peak_id, p.peak_reserved_bytes, p.capacity_bytes,
            row_number() OVER (ORDER BY p.run, p.rank, p.device_type, p.device) AS lane
        FROM lib.memory_peaks(runs, ranks, steps, false) AS p
    ),
    points AS NOT MATERIALIZED (
        SELECT
            p.lane, p.run, p.rank, p.device_type, p.device, m.span, m.ts, m.event_id, m.step, m.total_allocated_bytes AS allocated,
            CASE WHEN p.peak_reserved_bytes IS NOT NULL THEN m.total_reserved_bytes END AS reserved,
            coalesce(m.profiler_event_index, 0) AS position, m.event_id = p.peak_id AS is_top, p.capacity_bytes AS capacity
        FROM memory_events AS m
        JOIN peaks AS p
            ON p.run = m.run AND p.rank = m.rank AND p.device_type IS NOT DISTINCT FROM m.device_type
            AND p.device IS NOT DISTINCT FROM m.device
        WHERE lib.is_requested(steps, m.step)
    ),
    extents AS (
        SELECT
            p.lane, p.span, min(p.ts) AS first_ts, max(p.ts) - min(p.ts) + 1 AS extent, count(*) AS own_count,
            sum(count(*)) OVER (PARTITION BY p.lane) AS point_count
        FROM points AS p
        GROUP BY p.lane, p.span
    ),
    chosen AS (
        SELECT
            p.lane,
            unnest([
                arg_min(p.event_id, (p.ts, p.position, p.event_id)),
                arg_max(p.event_id, (p.ts, p.position, p.event_id)),
                arg_min(p.event_id, (p.allocated, p.ts, p.position, p.event_id)),
                -- In a tuple, NULL compares greater than any number.
                arg_max(p.event_id, (p.allocated, -p.ts, -p.position, -p.event_id)) FILTER (p.allocated IS NOT NULL),
                arg_max(p.event_id, (p.reserved, -p.ts, -p.position, -p.event_id)) FILTER (p.reserved IS NOT NULL)
            ]) AS event_id
        FROM points AS p
        JOIN extents AS x ON x.lane = p.lane AND x.span = p.span
        WHERE x.point_count > max_points
        GROUP BY p.lane, p.span, (p.ts - x.first_ts)::HUGEINT * greatest(1, max_points // 5 * x.own_count // x.point_count) // x.extent
    )
SELECT
    p.run, p.rank, p.device_type, p.device, lib.device_label(p.device_type, p.device) AS device_label, p.ts, p.event_id, p.step, p.allocated AS allocated_bytes, p.reserved AS reserved_bytes,
    coalesce(p.is_top, false) AS is_peak, p.capacity AS capacity_bytes
FROM points AS p
JOIN extents AS x ON x.lane = p.lane AND x.span = p.span
LEFT JOIN (SELECT DISTINCT c.lane, c.event_id FROM chosen AS c) AS k ON k.lane = p.lane AND k.event_id = p.event_id
WHERE max_points IS NULL OR x.point_count <= max_points OR k.event_id IS NOT NULL
ORDER BY p.lane, p.ts, p.position, p.event_id
