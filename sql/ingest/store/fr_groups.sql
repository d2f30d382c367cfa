-- One row for each process group that a Flight Recorder dump names.
SELECT
    j.run,
    j.rank,
    x.pg_id,
    x.pg_name,
    x.pg_desc,
    x.member_ranks,
    x.member_count,
    x.last_enqueued_id,
    x.last_started_id,
    x.last_completed_id
FROM staged_fr_groups AS x
CROSS JOIN job AS j
ORDER BY x.pg_name, x.pg_id
