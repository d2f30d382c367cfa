-- Time at which each Flight Recorder dump was written, and the longest pause of the ranks of its run.
--
-- A dump does not state when it was written, so this is the modification time of its file. A copied file may have a
-- later one. A time before the last operation in the dump is wrong, and NULL.
CREATE OR REPLACE MACRO lib._dump_times(
    runs
) AS TABLE
-- Columns:
--   run         VARCHAR      Run name.
--   rank        INTEGER      Rank of the dump.
--   written_ns  BIGINT [ns]  Unix time when the file of the dump was last changed; NULL if unknown.
--   pause_ns    BIGINT [ns]  Longest time between two consecutive operations of a rank of the run; NULL without two.
--   timeout_ns  BIGINT [ns]  Longest timeout of an operation of the run; NULL if no dump states one.
WITH
    _paused AS (
        SELECT
            e.run, e.rank, e.created_ns, e.timeout_ns, e.created_ns - lag(e.created_ns) OVER (PARTITION BY e.run, e.rank ORDER BY e.record_id) AS pause_ns
        FROM fr_entries AS e
        WHERE lib.is_requested(runs, e.run)
    ),
    _lasts AS (
        SELECT p.run, p.rank, max(p.created_ns) AS last_ns, max(p.pause_ns) AS pause_ns, max(p.timeout_ns) AS timeout_ns
        FROM _paused AS p
        GROUP BY p.run, p.rank
    ),
    _files AS (
        SELECT s.run, s.rank, max(TRY_CAST(s.metadata ->> '$.flight_recorder.written_ns' AS BIGINT)) AS written_ns
        FROM ranks AS s
        WHERE lib.is_requested(runs, s.run)
        GROUP BY s.run, s.rank
    )
SELECT
    l.run,
    l.rank,
    CASE WHEN f.written_ns >= l.last_ns THEN f.written_ns END AS written_ns,
    max(l.pause_ns) OVER (PARTITION BY l.run) AS pause_ns,
    max(l.timeout_ns) OVER (PARTITION BY l.run) AS timeout_ns
FROM _lasts AS l
LEFT JOIN _files AS f ON f.run = l.run AND f.rank = l.rank
