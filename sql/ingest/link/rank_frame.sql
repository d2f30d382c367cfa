-- One row: what every row of the rank is placed by. One cross join instead of three.
--
-- start_ns adds baseTimeNanoseconds where the trace has one and is then Unix time.
CREATE OR REPLACE TEMP TABLE rank_frame AS
SELECT
    j.run,
    j.rank,
    k.first_ts,
    k.last_ts,
    k.recording_end_ts,
    coalesce(TRY_CAST(j.metadata ->> '$.baseTimeNanoseconds' AS BIGINT), 0) + k.first_ts AS start_ns,
    s.last_step_ts
FROM job AS j, rank_clock AS k, last_step AS s
