-- One row: what every row of the rank is placed by. One cross join instead of three.
--
-- start_ns adds baseTimeNanoseconds where the trace has one and is then Unix time. A base that is
-- no time between 1970 and 2065 counts as none; the metadata keep it.
CREATE OR REPLACE TABLE rank_frame AS
WITH
    clock AS (
        SELECT TRY_CAST(m.metadata ->> '$.baseTimeNanoseconds' AS BIGINT) AS stated
        FROM job AS m
    ),
    base AS (
        SELECT CASE WHEN c.stated BETWEEN 0 AND 3_000_000_000_000_000_000 THEN c.stated END AS base_time_ns
        FROM clock AS c
    )
SELECT
    j.run,
    j.rank,
    k.first_ts,
    k.last_ts,
    k.recording_end_ts,
    k.window_end_ts,
    b.base_time_ns,
    coalesce(b.base_time_ns, 0) + k.first_ts AS start_ns,
    s.last_step_ts
FROM job AS j, base AS b, rank_clock AS k, last_step AS s
