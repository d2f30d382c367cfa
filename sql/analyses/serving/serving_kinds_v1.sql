-- Device time of serving iterations by phase and kind of work.
--
-- Title: Serving by kind of work
-- Shown: rank, phase, category, total_ns, total_pct, op_count
-- Report: first 2; if iterations
-- Status: experimental
-- Since: 0.1
-- Reference: TraceLens inference report, categories of kernels
-- Needs: annotations of a serving engine, or graph replays
-- Scope: runs, ranks; iterations of a server are not profiler steps
-- Chart:
--   mark = "stack"
--   title = "Where the device time of iterations goes"
--   notes = ["Mean iteration of each phase."]
--   bar = ["category"]
--   mean = "rank"
--   shares = false
--   legend = "Phase"
--   whole = "the category"
--   value = "iteration_ns"
--   part = "phase"
--   parts.prefill = ["prefill", "computation"]
--   parts.mixed = ["mixed", "#CC79A7"]
--   parts.decode = ["decode", "#009E73"]
--   parts.speculative = ["speculative", "#56B4E9"]
--   parts.idle = "idle"
CREATE OR REPLACE MACRO serving_kinds_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL
) AS TABLE
-- Columns:
--   run           VARCHAR         Run name.
--   rank          INTEGER         Rank of the process.
--   phase         VARCHAR         prefill, decode, mixed, speculative or idle; NULL if unknown.
--   category      VARCHAR         attention, gemm, grouped_gemm, moe, norm, communication, …; other if no rule matches.
--   op_count      BIGINT [count]  Number of device operations.
--   total_ns      BIGINT [ns]     Total duration of these device operations.
--   total_pct     DOUBLE [%]      total_ns as a share of the total duration of all operations in the phase.
--   iteration_ns  BIGINT [ns]     total_ns divided by the number of iterations in the phase.
WITH
    found AS MATERIALIZED (
        SELECT i.*, count(*) OVER (PARTITION BY i.run, i.rank, i.phase) AS iteration_count
        FROM lib.serving_iterations(runs, ranks) AS i
    )
SELECT
    o.run,
    o.rank,
    i.phase,
    c.category,
    count(*) AS op_count,
    sum(o.dur)::BIGINT AS total_ns,
    100 * sum(o.dur) / nullif(sum(sum(o.dur)) OVER (PARTITION BY o.run, o.rank, i.phase), 0) AS total_pct,
    (sum(o.dur) / any_value(i.iteration_count))::BIGINT AS iteration_ns
FROM lib.iteration_ops('found', runs, ranks) AS o
JOIN found AS i ON i.run = o.run AND i.rank = o.rank AND i.event_id = o.iteration_id
JOIN lib.categorized_gpu_ops(runs, ranks, NULL, true) AS c ON c.run = o.run AND c.rank = o.rank AND c.event_id = o.event_id
GROUP BY o.run, o.rank, i.phase, c.category
ORDER BY o.run, o.rank, i.phase, total_ns DESC, c.category
