-- One row per process group in a Flight Recorder dump.
SELECT
    j.run,
    j.rank,
    x.pg_id,
    x.pg_name,
    x.pg_desc,
    CASE
        WHEN j.first_rank = 0 THEN x.member_ranks
        ELSE to_json(list_transform(from_json(x.member_ranks, '["BIGINT"]'), lambda r: r + j.first_rank))::VARCHAR
    END AS member_ranks,
    x.member_count,
    x.last_enqueued_id,
    x.last_started_id,
    x.last_completed_id
FROM staged_fr_groups AS x
CROSS JOIN job AS j
ORDER BY x.pg_name, x.pg_id
