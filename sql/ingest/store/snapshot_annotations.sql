-- One row per start or end of an annotation in a memory snapshot.
SELECT
    j.run,
    j.rank,
    x.annotation_id,
    x.device,
    x.stage,
    x.name,
    TRY_CAST(x.time_us::HUGEINT * 1000 AS BIGINT) AS time_ns
FROM staged_snapshot_annotations AS x
CROSS JOIN job AS j
ORDER BY x.annotation_id
