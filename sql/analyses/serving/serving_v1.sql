-- Serving by phase: time per token, tokens per second, device utilization, and the gaps between iterations.
--
-- The time of an iteration runs from the end of the previous iteration on the device to the end of the iteration,
-- without unrecorded time. The first iteration of a rank starts with its first operation. A request that decodes gets
-- one token per iteration, so the iteration time is the request's time per output token. Rates are relative to the sum
-- of iteration times. If annotations do not determine the number of generated tokens, the minimum and the maximum are
-- given.
--
-- Title: Serving by phase
-- Shown: rank, phase, iteration_count, iteration_p50_ns, iteration_p99_ns, input_tokens_per_s, max_output_tokens_per_s, busy_pct, gap_p50_ns, graph_pct
-- Also: vllm, sglang, time per token, tpot, ttft, tokens per second, inference
-- Report: first 1; table; if iterations
-- Status: experimental
-- Since: 0.1
-- Reference: vLLM metrics (time per output token), TraceLens inference report
-- Needs: annotations of a serving engine, or graph replays
-- Scope: runs, ranks; iterations of a server are not profiler steps
CREATE OR REPLACE MACRO serving_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL
) AS TABLE
-- Columns:
--   run                      VARCHAR          Run name.
--   rank                     INTEGER          Rank of the process.
--   phase                    VARCHAR          prefill, decode, mixed, speculative or idle; NULL if unknown.
--   framework                VARCHAR          Engine; NULL if no annotation names it.
--   iteration_count          BIGINT [count]   Number of iterations.
--   iteration_p50_ns         BIGINT [ns]      Median time of an iteration; for requests that decode, the time per output token.
--   iteration_p90_ns         BIGINT [ns]      90th percentile of the time of an iteration.
--   iteration_p99_ns         BIGINT [ns]      99th percentile of the time of an iteration.
--   input_tokens_per_s       DOUBLE [1/s]     new_tokens per second of iteration time; NULL unless all iterations state the number of tokens.
--   min_output_tokens_per_s  DOUBLE [1/s]     min_output_tokens per second of iteration time.
--   max_output_tokens_per_s  DOUBLE [1/s]     max_output_tokens per second of iteration time.
--   mean_request_count       DOUBLE [count]   Mean number of requests per iteration.
--   mean_context_tokens      DOUBLE [tokens]  Mean context length of a request.
--   device_ns                BIGINT [ns]      Time on the device, without gaps and unrecorded time.
--   busy_ns                  BIGINT [ns]      Part of device_ns in which at least one operation runs.
--   busy_pct                 DOUBLE [%]       busy_ns as a share of the sum of iteration times.
--   gap_ns                   BIGINT [ns]      Total time between iterations, which is part of the iteration times; NULL if no iteration has a predecessor.
--   gap_p50_ns               BIGINT [ns]      Median gap before an iteration; NULL if no iteration has a predecessor.
--   host_p50_ns              BIGINT [ns]      Median time of an iteration on the host; if it exceeds iteration_p50_ns, the host cannot keep up.
--   unrecorded_ns            BIGINT [ns]      Unrecorded time inside iterations; no other column includes it.
--   graph_pct                DOUBLE [%]       Iterations that replay graphs, wholly or in pieces, as a share of iteration_count.
WITH
    found AS MATERIALIZED (
        FROM lib.serving_iterations(runs, ranks)
    ),
    ops AS (
        FROM lib.iteration_ops('found', runs, ranks)
    ),
    timed AS MATERIALIZED (
        FROM lib.measured_iterations('found', 'ops')
    )
SELECT
    t.run,
    t.rank,
    t.phase,
    min(t.framework) AS framework,
    count(*) AS iteration_count,
    round(quantile_cont(t.iteration_ns, 0.5))::BIGINT AS iteration_p50_ns,
    round(quantile_cont(t.iteration_ns, 0.9))::BIGINT AS iteration_p90_ns,
    round(quantile_cont(t.iteration_ns, 0.99))::BIGINT AS iteration_p99_ns,
    CASE WHEN count(t.new_tokens) = count(*) THEN 1e9 * sum(t.new_tokens) / nullif(sum(t.iteration_ns), 0) END AS input_tokens_per_s,
    CASE WHEN count(t.min_output_tokens) = count(*) THEN 1e9 * sum(t.min_output_tokens) / nullif(sum(t.iteration_ns), 0) END AS min_output_tokens_per_s,
    CASE WHEN count(t.max_output_tokens) = count(*) THEN 1e9 * sum(t.max_output_tokens) / nullif(sum(t.iteration_ns), 0) END AS max_output_tokens_per_s,
    avg(t.request_count) AS mean_request_count,
    sum(t.context_tokens) / nullif(sum(t.request_count) FILTER (t.context_tokens IS NOT NULL), 0) AS mean_context_tokens,
    sum(t.device_ns)::BIGINT AS device_ns,
    sum(t.busy_ns)::BIGINT AS busy_ns,
    100 * sum(t.busy_ns) / nullif(sum(t.iteration_ns), 0) AS busy_pct,
    sum(greatest(t.gap_before_ns, 0)) FILTER (t.gap_before_ns IS NOT NULL)::BIGINT AS gap_ns,
    round(quantile_cont(t.gap_before_ns, 0.5))::BIGINT AS gap_p50_ns,
    round(quantile_cont(t.host_ns, 0.5))::BIGINT AS host_p50_ns,
    sum(t.unrecorded_ns)::BIGINT AS unrecorded_ns,
    100 * count_if(t.execution IN ('graph', 'piecewise')) / count(*) AS graph_pct
FROM timed AS t
GROUP BY t.run, t.rank, t.phase
ORDER BY t.run, t.rank, sum(t.iteration_ns) DESC NULLS LAST, t.phase
