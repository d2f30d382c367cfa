-- Flight Recorder dumps and memory snapshots of a store.

-- name: dumped_ranks
-- Ranks with a Flight Recorder dump that contains an operation.
SELECT DISTINCT g.run, g.rank
FROM fr_groups AS g
ORDER BY g.run, g.rank;

-- name: damaged_dumps
SELECT d.run, d.rank, d.reason
FROM lib.damaged_artifacts(NULL) AS d
WHERE d.is_dump
ORDER BY ALL;

-- name: snapshot_count
SELECT count(*)
FROM snapshot_segments;
