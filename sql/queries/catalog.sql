-- Facts that a catalog records about itself.

-- name: identity
SELECT i.location, i.manifest, i.library
FROM stored.store_info AS i;

-- name: omitted_runs
-- Runs with other table definitions, and runs whose files are missing or corrupt.
SELECT i.left_out, i.lost
FROM stored.store_info AS i;

-- name: store_manifest
CREATE TABLE stored.manifest_copy AS
SELECT $content::BLOB AS content;

-- name: manifest
SELECT m.content
FROM stored.manifest_copy AS m;

-- name: ranks
SELECT r.run, r.rank, r.event_count, r.definitions_changed
FROM stored.rank_scope AS r;

-- name: materialized_answers
SELECT a.name, a.run
FROM stored.kept_answers AS a;

-- name: analysis_count
-- Number of analyses, including those that users added to the store.
SELECT count(DISTINCT a.name)
FROM analyses AS a;

-- name: free_start
-- 8-byte numbers that do not compress; dropping them leaves free blocks at the start of the file.
CREATE TABLE free_start AS
SELECT hash(r.range) AS number
FROM range($count) AS r;
