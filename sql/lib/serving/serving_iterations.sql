-- Iterations of serving engines, with their start and end on the host thread that launches them.
--
-- Each annotation of the engine is an iteration. For a rank without annotations, each call of a Python frame or range in
-- which an engine runs one iteration (`iteration_frames`) is an iteration or, without any, each period of graph replays;
-- phase and numbers are then unknown. If the replays have no period, the rank has no iterations.
CREATE OR REPLACE MACRO lib.serving_iterations(
    runs,
    ranks
) AS TABLE
-- Columns:
--   detected_by           VARCHAR          annotation, frame or graph (a period of graph replays).
--   run                   VARCHAR          Run name.
--   rank                  INTEGER          Rank of the process.
--   span                  INTEGER          Recording of the rank.
--   event_id              BIGINT           event_id of the outermost annotation or frame, or of the first call that replays a graph.
--   pid                   BIGINT           Process id of the host thread.
--   tid                   BIGINT           Thread id of that event.
--   name                  VARCHAR          Name of the annotation or frame, or of the call that replays a graph.
--   framework             VARCHAR          Engine; NULL if unknown.
--   phase                 VARCHAR          prefill, decode, mixed, speculative or idle.
--   request_count         BIGINT [count]   Number of requests.
--   new_tokens            BIGINT [tokens]  Number of tokens processed.
--   prefill_tokens        BIGINT [tokens]  Part of new_tokens that belongs to prompts.
--   min_output_tokens     BIGINT [tokens]  Minimum number of generated tokens: one for each request that decodes.
--   max_output_tokens     BIGINT [tokens]  Maximum number of generated tokens: one more for each prompt, which may end in the iteration.
--   context_tokens        BIGINT [tokens]  Sum of the context lengths of all requests.
--   attention_pair_count  BIGINT [count]   Number of query-key pairs of causal attention.
--   padded_request_count  BIGINT [count]   Number of requests for which a graph was captured.
--   ts                    BIGINT [ns]      Start on the host, relative to the run's first event.
--   end_ts                BIGINT [ns]      End on the host.
WITH
    _annotated AS MATERIALIZED (
        FROM lib.annotated_iterations(runs, ranks)
    ),
    -- Of nested calls, the outermost is the iteration. Calls without device operations are excluded.
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
    ),
    _framed AS MATERIALIZED (
        SELECT o.run, o.rank, o.span, o.event_id, o.pid, o.tid, o.name, nullif(o.framework, 'any') AS framework, o.ts, o.end_ts
        FROM _outer AS o
        JOIN _busy AS b ON b.run = o.run AND b.rank = o.rank AND b.event_id = o.event_id
        JOIN _chosen AS c ON c.run = o.run AND c.rank = o.rank AND c.priority = o.priority
        ANTI JOIN _annotated AS a ON a.run = o.run AND a.rank = o.rank
    )
SELECT 'annotation' AS detected_by, a.*
FROM _annotated AS a
UNION ALL BY NAME
SELECT 'frame' AS detected_by, f.*
FROM _framed AS f
UNION ALL BY NAME
SELECT 'graph' AS detected_by, p.*
FROM lib._periodic_iterations(runs, ranks) AS p
ANTI JOIN _annotated AS a ON a.run = p.run AND a.rank = p.rank
ANTI JOIN _framed AS f ON f.run = p.run AND f.rank = p.rank
WHERE p.event_id IS NOT NULL
