-- Iterations that a serving engine annotates, with their time on the host, requests and tokens.
--
-- The formats of these annotations are defined in the tables iteration_formats and iteration_fields. Nested annotations
-- of a thread belong to one iteration. Each number comes from the format with the lowest priority value among the
-- formats that contain the number.
CREATE OR REPLACE MACRO lib.annotated_iterations(
    runs,
    ranks
) AS TABLE
-- Columns:
--   run                   VARCHAR          Run name.
--   rank                  INTEGER          Rank of the process.
--   span                  INTEGER          Recording of the rank.
--   event_id              BIGINT           event_id of the outermost annotation.
--   pid                   BIGINT           Process id of the host thread.
--   tid                   BIGINT           Thread id of the annotation.
--   name                  VARCHAR          Name of the annotation.
--   framework             VARCHAR          Name of the engine.
--   phase                 VARCHAR          prefill, decode, mixed, speculative or idle.
--   request_count         BIGINT [count]   Number of requests.
--   new_tokens            BIGINT [tokens]  Number of tokens processed.
--   prefill_tokens        BIGINT [tokens]  Part of new_tokens that belongs to prompts.
--   min_output_tokens     BIGINT [tokens]  Minimum number of generated tokens: one for each request that decodes.
--   max_output_tokens     BIGINT [tokens]  Maximum number of generated tokens: one more for each prompt, which may end in the iteration.
--   context_tokens        BIGINT [tokens]  Sum of the context lengths of all requests.
--   attention_pair_count  BIGINT [count]   Number of query-key pairs of causal attention.
--   padded_request_count  BIGINT [count]   Number of requests for which a graph was captured.
--   ts                    BIGINT [ns]      Start of the annotation, relative to the run's first event.
--   end_ts                BIGINT [ns]      End of the annotation.
WITH
    _names AS MATERIALIZED (
        SELECT DISTINCT a.name
        FROM annotations AS a
        WHERE NOT a.on_gpu AND lib.is_requested(runs, a.run) AND lib.is_requested(ranks, a.rank)
    ),
    _formatted AS MATERIALIZED (
        SELECT n.name, f.format, f.framework, f.priority, f.is_shared
        FROM _names AS n
        JOIN iteration_formats AS f ON starts_with(n.name, f.prefix) AND regexp_matches(n.name, f.pattern)
    ),
    _values AS (
        SELECT n.name, d.field, nullif(regexp_extract(n.name, d.pattern, 1), '') AS value
        FROM _formatted AS n
        JOIN iteration_fields AS d ON d.format = n.format
    ),
    -- Numbers above 2^50 are ignored.
    _numbers AS (
        SELECT v.name, v.field, v.value, CASE WHEN TRY_CAST(v.value AS BIGINT) <= 1125899906842624 THEN TRY_CAST(v.value AS BIGINT) END AS number
        FROM _values AS v
    ),
    _read AS (
        SELECT
            n.name,
            min(n.value) FILTER (n.field = 'mode') AS mode,
            min(n.number) FILTER (n.field = 'requests') AS requests,
            min(n.number) FILTER (n.field = 'padded_requests') AS padded,
            min(n.number) FILTER (n.field = 'context_requests') AS context_requests,
            min(n.number) FILTER (n.field = 'context_tokens') AS context_tokens,
            min(n.number) FILTER (n.field = 'context_kv') AS context_kv,
            min(n.number) FILTER (n.field = 'context_sqsq') AS context_sqsq,
            min(n.number) FILTER (n.field = 'context_sqsk') AS context_sqsk,
            min(n.number) FILTER (n.field = 'generation_requests') AS generation_requests,
            min(n.number) FILTER (n.field = 'generation_tokens') AS generation_tokens,
            min(n.number) FILTER (n.field = 'generation_kv') AS generation_kv,
            min(n.number) FILTER (n.field = 'generation_sqsq') AS generation_sqsq,
            min(n.number) FILTER (n.field = 'generation_sqsk') AS generation_sqsk
        FROM _numbers AS n
        GROUP BY n.name
    ),
    -- If a name states only one group of requests, the mode identifies the group.
    _worded AS (
        SELECT
            f.name, f.framework, f.priority, f.is_shared, r.mode, r.padded, r.requests,
            coalesce(r.context_requests, CASE WHEN r.mode IN ('EXTEND', 'SPLIT_PREFILL', 'prefill', 'DRAFT_EXTEND', 'DRAFT_EXTEND_V2') THEN r.requests WHEN r.mode IN ('DECODE', 'TARGET_VERIFY', 'decode', 'IDLE') THEN 0 END) AS context_requests,
            coalesce(r.generation_requests, CASE WHEN r.mode IN ('DECODE', 'TARGET_VERIFY', 'decode') THEN r.requests WHEN r.mode IN ('EXTEND', 'SPLIT_PREFILL', 'prefill', 'DRAFT_EXTEND', 'DRAFT_EXTEND_V2', 'IDLE') THEN 0 END) AS generation_requests,
            coalesce(r.context_tokens, CASE WHEN r.mode IN ('DECODE', 'decode', 'IDLE') THEN 0 END) AS context_tokens,
            coalesce(r.generation_tokens, CASE WHEN r.mode = 'DECODE' THEN r.requests WHEN r.mode IN ('EXTEND', 'SPLIT_PREFILL', 'prefill', 'IDLE') THEN 0 END) AS generation_tokens,
            r.context_kv, r.context_sqsq, r.context_sqsk, r.generation_kv, r.generation_sqsq, r.generation_sqsk
        FROM _formatted AS f
        JOIN _read AS r ON r.name = f.name
    ),
    _found AS (
        SELECT
            a.run, a.rank, a.span, a.event_id, a.pid, a.tid, a.ts, a.ts + a.dur AS end_ts, w.*,
            -- An annotation is outermost if no earlier annotation of its thread ends after it starts.
            a.ts >= coalesce(max(a.ts + a.dur) OVER earlier, a.ts) AS is_outer
        FROM annotations AS a
        JOIN _worded AS w ON w.name = a.name
        WHERE NOT a.on_gpu AND lib.is_requested(runs, a.run) AND lib.is_requested(ranks, a.rank)
        WINDOW earlier AS (PARTITION BY a.run, a.rank, a.span, a.pid, a.tid ORDER BY a.ts, a.ts + a.dur DESC, a.event_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
    ),
    _grouped AS (
        SELECT f.*, count_if(f.is_outer) OVER (PARTITION BY f.run, f.rank, f.span, f.pid, f.tid ORDER BY f.ts, f.end_ts DESC, f.event_id ROWS UNBOUNDED PRECEDING) AS position
        FROM _found AS f
    ),
    _merged AS (
        SELECT
            g.run, g.rank, g.span, g.pid, g.tid, g.position,
            min(g.ts) AS ts,
            max(g.end_ts) AS end_ts,
            arg_min(g.event_id, (g.ts, -g.end_ts, g.event_id)) AS event_id,
            arg_min(g.name, (g.ts, -g.end_ts, g.event_id)) AS name,
            -- An engine may write names in the format of another one in addition to its own.
            arg_min(g.framework, (g.is_shared, g.priority, g.ts, g.event_id)) AS framework,
            arg_min(g.mode, (g.priority, g.ts, g.event_id)) AS mode,
            arg_min(g.padded, (g.priority, g.ts, g.event_id)) AS padded_request_count,
            arg_min(g.requests, (g.priority, g.ts, g.event_id)) AS requests,
            arg_min(g.context_requests, (g.priority, g.ts, g.event_id)) AS context_requests,
            arg_min(g.context_tokens, (g.priority, g.ts, g.event_id)) AS context_tokens,
            arg_min(g.context_kv, (g.priority, g.ts, g.event_id)) AS context_kv,
            arg_min(g.context_sqsq, (g.priority, g.ts, g.event_id)) AS context_sqsq,
            arg_min(g.context_sqsk, (g.priority, g.ts, g.event_id)) AS context_sqsk,
            arg_min(g.generation_requests, (g.priority, g.ts, g.event_id)) AS generation_requests,
            arg_min(g.generation_tokens, (g.priority, g.ts, g.event_id)) AS generation_tokens,
            arg_min(g.generation_kv, (g.priority, g.ts, g.event_id)) AS generation_kv,
            arg_min(g.generation_sqsq, (g.priority, g.ts, g.event_id)) AS generation_sqsq,
            arg_min(g.generation_sqsk, (g.priority, g.ts, g.event_id)) AS generation_sqsk
        FROM _grouped AS g
        GROUP BY g.run, g.rank, g.span, g.pid, g.tid, g.position
    ),
    -- For a group without requests, all sums are 0.
    _summed AS (
        SELECT
            m.* REPLACE (
                coalesce(m.context_tokens, CASE WHEN m.context_requests = 0 THEN 0 END) AS context_tokens,
                coalesce(m.context_kv, CASE WHEN m.context_requests = 0 THEN 0 END) AS context_kv,
                coalesce(m.context_sqsq, CASE WHEN m.context_requests = 0 THEN 0 END) AS context_sqsq,
                coalesce(m.context_sqsk, CASE WHEN m.context_requests = 0 THEN 0 END) AS context_sqsk,
                coalesce(m.generation_tokens, CASE WHEN m.generation_requests = 0 THEN 0 END) AS generation_tokens,
                coalesce(m.generation_kv, CASE WHEN m.generation_requests = 0 THEN 0 END) AS generation_kv,
                coalesce(m.generation_sqsq, CASE WHEN m.generation_requests = 0 THEN 0 END) AS generation_sqsq,
                coalesce(m.generation_sqsk, CASE WHEN m.generation_requests = 0 THEN 0 END) AS generation_sqsk
            )
        FROM _merged AS m
    )
SELECT
    m.run, m.rank, m.span, m.event_id, m.pid, m.tid, m.name, m.framework,
    CASE
        WHEN m.mode = 'IDLE' THEN 'idle'
        WHEN m.mode IN ('TARGET_VERIFY', 'DRAFT_EXTEND', 'DRAFT_EXTEND_V2') THEN 'speculative'
        WHEN m.context_requests > 0 AND m.generation_requests > 0 OR m.mode = 'MIXED' THEN 'mixed'
        WHEN m.context_requests > 0 THEN 'prefill'
        WHEN m.generation_tokens > m.generation_requests THEN 'speculative'
        WHEN m.generation_requests > 0 THEN 'decode'
        ELSE 'idle'
    END AS phase,
    coalesce(m.context_requests + m.generation_requests, m.requests) AS request_count,
    m.context_tokens + m.generation_tokens AS new_tokens,
    m.context_tokens AS prefill_tokens,
    m.generation_requests AS min_output_tokens,
    -- Speculation may accept all tokens that it verifies.
    m.context_requests + greatest(m.generation_requests, coalesce(m.generation_tokens, m.generation_requests)) AS max_output_tokens,
    m.context_kv + m.generation_kv AS context_tokens,
    -- For s new tokens at the end of a context of k tokens: s * k - (s * s - s) / 2, exact for whole prompts, chunks
    -- and decoding.
    (m.context_sqsk - (m.context_sqsq - m.context_tokens) // 2 + m.generation_sqsk - (m.generation_sqsq - m.generation_tokens) // 2)::BIGINT AS attention_pair_count,
    m.padded_request_count, m.ts, m.end_ts
FROM _summed AS m
