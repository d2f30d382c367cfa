-- Runs, ranks and steps of a store, for commands and messages.

-- name: listed
-- Runs as the command `runs` lists them.
SELECT r.run, r.rank_count, r.world_size, r.device_names, r.step_count, r.captured_at, r.ingested_at, r.tags, r.size_bytes
FROM runs AS r
ORDER BY r.start_ns, r.run;

-- name: all_columns
SELECT r.*
FROM runs AS r
ORDER BY r.run;

-- name: incomplete
-- Runs that lack ranks of their job.
SELECT r.run, r.rank_count, r.world_size
FROM runs AS r
WHERE r.rank_count < r.world_size
ORDER BY r.run;

-- name: with_losses
-- Runs with parts of traces that could not be read.
SELECT DISTINCT q.run
FROM quarantine AS q
WHERE q.is_lost
ORDER BY q.run;

-- name: sources
-- Trace of each rank, and the start of the job on its clock [ns]; $run is NULL for all runs.
SELECT r.run, r.rank, r.source, r.first_ts - r.offset_ns AS zero_ns
FROM ranks AS r
WHERE $run::VARCHAR IS NULL OR r.run = $run
ORDER BY r.run, r.rank;

-- name: files_of_rank
-- Trace files of a rank, one for each time it was recorded.
SELECT s.source, s.event_count, s.first_ts, s.offset_ns
FROM rank_spans AS s
WHERE s.run = $run AND s.rank = $rank;

-- name: steps
-- Profiler steps of each run that has any, including the last one.
SELECT s.run, list(DISTINCT s.step ORDER BY s.step) AS steps
FROM steps AS s
GROUP BY s.run
ORDER BY s.run;

-- name: step_share
-- Share of a run's recording that is in steps; NULL without steps.
SELECT sum(s.dur) / nullif((SELECT sum(r.dur) FROM ranks AS r WHERE r.run = $run), 0) AS share
FROM steps AS s
WHERE s.run = $run;

-- name: times
-- Sums that change with any event, time or name of a rank.
SELECT e.rank, count(*), sum(e.ts)::VARCHAR, sum(e.dur)::VARCHAR, count(DISTINCT e.name)
FROM events AS e
WHERE e.run = $run
GROUP BY e.rank
ORDER BY e.rank;

-- name: roles
-- Role of each rank; NULL if neither the rank's trace nor the ingest states a role.
SELECT r.run, r.rank, r.role
FROM ranks AS r
ORDER BY r.run, r.rank;
