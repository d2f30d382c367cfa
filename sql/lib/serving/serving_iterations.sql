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
    _framed AS MATERIALIZED (
        SELECT f.*
        FROM lib._framed_iterations(runs, ranks) AS f
        WHERE NOT EXISTS (FROM _annotated AS a WHERE a.run = f.run AND a.rank = f.rank)
    )
SELECT 'annotation' AS detected_by, a.*
FROM _annotated AS a
UNION ALL BY NAME
SELECT 'frame' AS detected_by, f.*
FROM _framed AS f
UNION ALL BY NAME
SELECT 'graph' AS detected_by, p.*
FROM lib._periodic_iterations(runs, ranks) AS p
WHERE
    p.event_id IS NOT NULL
    AND NOT EXISTS (FROM _annotated AS a WHERE a.run = p.run AND a.rank = p.rank)
    AND NOT EXISTS (FROM _framed AS f WHERE f.run = p.run AND f.rank = p.rank)
