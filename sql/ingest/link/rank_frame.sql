-- A row for each rank: what every row of it is placed by. One join instead of three.
--
-- start_ns adds baseTimeNanoseconds where the trace has one and is then Unix time. A base that is
-- no time between 1970 and 2065 counts as none; the metadata keep it.
CREATE OR REPLACE TABLE rank_frame AS
WITH
    clock AS (
        SELECT m.*, TRY_CAST(m.metadata ->> '$.baseTimeNanoseconds' AS BIGINT) AS stated
        FROM job AS m
    ),
    base AS (
        SELECT
            c.part,
            c.run,
            c.rank,
            CASE WHEN c.stated BETWEEN 0 AND 3_000_000_000_000_000_000 THEN c.stated END AS base_time_ns
        FROM clock AS c
    )
SELECT
    b.part,
    b.run,
    b.rank,
    k.first_ts,
    k.last_ts,
    k.recording_end_ts,
    k.window_end_ts,
    b.base_time_ns,
    coalesce(b.base_time_ns, 0) + k.first_ts AS start_ns,
    s.last_step_ts
FROM base AS b
JOIN rank_clock AS k ON k.part = b.part
LEFT JOIN last_step AS s ON s.part = b.part
