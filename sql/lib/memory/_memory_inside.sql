-- Memory allocated minus freed during each call, on any thread.
--
-- Events at the start and end of the call are included. Freed bytes are negative, so the result is negative for a
-- call that frees more than it allocates.
CREATE OR REPLACE MACRO lib._memory_inside(
    -- Name of a relation of calls with call_id, lane, ts and dur; lane is a number that identifies run and rank.
    called_spans,
    -- Name of a relation with run, rank, lane.
    lane_spans
) AS TABLE
-- Columns:
--   call_id       BIGINT          Id of the call.
--   host_bytes    BIGINT [bytes]  Host memory allocated minus freed.
--   device_bytes  BIGINT [bytes]  Device memory allocated minus freed.
WITH
    _changes AS MATERIALIZED (
        SELECT
            l.lane, m.ts,
            coalesce(sum(m.bytes) FILTER (m.device_type = 0), 0) AS host_bytes,
            coalesce(sum(m.bytes) FILTER (m.device_type <> 0), 0) AS device_bytes
        FROM memory_events AS m
        JOIN query_table(lane_spans) AS l ON l.run = m.run AND l.rank = m.rank
        GROUP BY l.lane, m.ts
    ),
    _levels AS MATERIALIZED (
        SELECT
            c.lane, c.ts,
            (sum(c.host_bytes) OVER so_far)::BIGINT AS host_bytes,
            (sum(c.device_bytes) OVER so_far)::BIGINT AS device_bytes
        FROM _changes AS c
        WINDOW so_far AS (PARTITION BY c.lane ORDER BY c.ts)
    ),
    -- Most ranks record no memory events; skip the lookup for them.
    _remembered AS (
        SELECT c.call_id, c.lane, c.ts, c.ts + c.dur AS end_ts
        FROM query_table(called_spans) AS c
        SEMI JOIN _changes AS r ON r.lane = c.lane
    )
SELECT
    c.call_id AS call_id,
    coalesce(e.host_bytes, 0) - coalesce(b.host_bytes, 0) AS host_bytes,
    coalesce(e.device_bytes, 0) - coalesce(b.device_bytes, 0) AS device_bytes
FROM _remembered AS c
ASOF LEFT JOIN _levels AS b ON b.lane = c.lane AND c.ts > b.ts
ASOF LEFT JOIN _levels AS e ON e.lane = c.lane AND c.end_ts >= e.ts
