-- Facts about the traces of a batch, read from the staged tables.

-- name: total_durations
SELECT c.part, c.total_ns
FROM rank_clock AS c;

-- name: steps
SELECT s.part, s.name
FROM profiler_steps AS s;

-- name: clocks
SELECT f.part, f.start_ns, f.base_time_ns IS NOT NULL
FROM rank_frame AS f;

-- name: chunk_starts
SELECT c.chunk, c.first_event_id
FROM chunk_starts AS c;
