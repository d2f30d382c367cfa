-- Iterations of serving engines, with their start and end on the host thread that launches them.
--
-- Each annotation of the engine is an iteration. For a rank without annotations, each replay of the rank's largest
-- graph is an iteration, with unknown phase and numbers. All replays of a graph have the same number of operations
-- unless some were lost, so replays with at least 90 % of the largest number are used.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib.serving_iterations(
    -- Runs to include; NULL means every run.
    runs,
    -- Ranks to include; NULL means every rank.
    ranks
) AS TABLE
-- Columns:
--   detected_by           VARCHAR          annotation or graph.
--   run                   VARCHAR          Run name.
--   rank                  INTEGER          Rank of the process.
--   span                  INTEGER          Recording of the rank.
--   event_id              BIGINT           event_id of the outermost annotation, or of the call that replays the graph.
--   pid                   BIGINT           Process id of the host thread.
--   tid                   BIGINT           Thread id of that annotation or call.
--   name                  VARCHAR          Name of the annotation, or of the call that replays the graph.
--   framework             VARCHAR          Engine.
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
    _replays AS (
        SELECT c.run, c.rank, c.span, c.event_id, c.pid, c.tid, c.name, c.ts, c.ts + c.dur AS end_ts, count(*) AS op_count
        FROM runtime_calls AS c
        JOIN gpu_ops AS g ON g.run = c.run AND g.rank = c.rank AND g.launch_id = c.event_id
        WHERE contains(c.name, 'GraphLaunch') AND lib.is_requested(runs, c.run) AND lib.is_requested(ranks, c.rank)
        GROUP BY ALL
    ),
    _largest AS (
        SELECT r.* EXCLUDE (op_count)
        FROM _replays AS r
        WHERE NOT EXISTS (FROM _annotated AS a WHERE a.run = r.run AND a.rank = r.rank)
        QUALIFY r.op_count >= 0.9 * max(r.op_count) OVER (PARTITION BY r.run, r.rank)
    )
SELECT 'annotation' AS detected_by, a.*
FROM _annotated AS a
UNION ALL BY NAME
SELECT 'graph' AS detected_by, l.*
FROM _largest AS l
