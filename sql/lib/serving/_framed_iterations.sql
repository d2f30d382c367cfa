-- Iterations of serving engines from Python frames or ranges that run one iteration each.
--
-- Patterns of their names are in the table iteration_frames. Of nested calls, the outermost is the iteration. Calls
-- without device operations are excluded.
CREATE OR REPLACE MACRO lib._framed_iterations(
    runs,
    ranks
) AS TABLE
-- Columns:
--   run        VARCHAR      Run name.
--   rank       INTEGER      Rank of the process.
--   span       INTEGER      Recording of the rank.
--   event_id   BIGINT       event_id of the frame or range.
--   pid        BIGINT       Process id of the host thread.
--   tid        BIGINT       Thread id.
--   name       VARCHAR      Name of the frame or range.
--   framework  VARCHAR      Engine; NULL if the name does not state it.
--   ts         BIGINT [ns]  Start on the host, relative to the run's first event.
--   end_ts     BIGINT [ns]  End on the host.
WITH
    _calls AS (
        SELECT p.run, p.rank, p.span, p.event_id, p.pid, p.tid, p.name, p.ts, p.dur FROM python_calls AS p
        UNION ALL
        SELECT a.run, a.rank, a.span, a.event_id, a.pid, a.tid, a.name, a.ts, a.dur FROM annotations AS a WHERE NOT a.on_gpu
    ),
    _names AS MATERIALIZED (
        SELECT DISTINCT c.name FROM _calls AS c WHERE lib.is_requested(runs, c.run) AND lib.is_requested(ranks, c.rank)
    ),
    _known AS MATERIALIZED (
        SELECT n.name, arg_min(f.framework, f.priority) AS framework, min(f.priority) AS priority
        FROM _names AS n
        JOIN iteration_frames AS f ON contains(n.name, f.part) AND regexp_full_match(n.name, f.pattern)
        GROUP BY n.name
    ),
    _named AS MATERIALIZED (
        SELECT c.*, c.ts + c.dur AS end_ts, k.framework, k.priority
        FROM _calls AS c
        JOIN _known AS k ON k.name = c.name
        WHERE lib.is_requested(runs, c.run) AND lib.is_requested(ranks, c.rank)
    ),
    _launches AS (
        SELECT DISTINCT g.run, g.rank, g.span, g.launch_pid AS pid, g.launch_tid AS tid, g.launch_ts AS at_ts
        FROM gpu_ops AS g
        WHERE g.launch_ts IS NOT NULL AND g.class <> 'sync' AND (g.run, g.rank) IN (SELECT (n.run, n.rank) FROM _named AS n)
    ),
    _outer AS MATERIALIZED (
        SELECT n.*
        FROM _named AS n
        QUALIFY
            n.ts >= coalesce(max(n.end_ts) OVER (
                PARTITION BY n.run, n.rank, n.span, n.pid, n.tid, n.priority ORDER BY n.ts, n.end_ts DESC, n.event_id
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ), n.ts)
    ),
    _busy AS (
        SELECT DISTINCT o.run, o.rank, o.event_id, o.priority
        FROM _outer AS o
        JOIN _launches AS l ON l.run = o.run AND l.rank = o.rank AND l.span = o.span AND l.pid = o.pid AND l.tid = o.tid AND l.at_ts >= o.ts AND l.at_ts < o.end_ts
    ),
    _chosen AS (
        SELECT b.run, b.rank, min(b.priority) AS priority FROM _busy AS b GROUP BY b.run, b.rank
    )
SELECT o.run, o.rank, o.span, o.event_id, o.pid, o.tid, o.name, nullif(o.framework, 'any') AS framework, o.ts, o.end_ts
FROM _outer AS o
JOIN _busy AS b ON b.run = o.run AND b.rank = o.rank AND b.event_id = o.event_id
JOIN _chosen AS c ON c.run = o.run AND c.rank = o.rank AND c.priority = o.priority
