-- Device activity grouped by name, and by the operator and annotation that enclose its launch.
CREATE OR REPLACE MACRO lib._advice_kernels(
    runs,
    ranks,
    -- Profiler steps to include; NULL means every step.
    steps,
    include_last_profiler_step
) AS TABLE
-- Columns:
--   run          VARCHAR         Run name.
--   rank         INTEGER         Rank of the process.
--   class        VARCHAR         Class of the operation: computation, communication or memory.
--   name         VARCHAR         Kernel name, or kind and direction of a copy.
--   op_name      VARCHAR         Innermost enclosing operator; NULL if there is none.
--   annotation   VARCHAR         Innermost enclosing user annotation; NULL if there is none.
--   event_count  BIGINT [count]  Number of device operations.
--   total_ns     BIGINT [ns]     Total duration.
--   small_count  BIGINT [count]  Number of operations shorter than short_ns of advice_rules.
--   small_ns     BIGINT [ns]     Total duration of these short operations.
--   event_id     BIGINT          event_id of the longest operation; the first one if several are equal.
--   attention_part  VARCHAR      softmax or product if the operation is that part of unfused attention; otherwise NULL.
WITH
    _limit AS (
        SELECT r.short_ns FROM advice_rules AS r WHERE r.kind = 'short kernels'
    )
SELECT
    g.run, g.rank, g.class, g.name, c.name AS op_name, a.name AS annotation,
    count(*) AS event_count,
    sum(g.dur)::BIGINT AS total_ns,
    count_if(g.dur < s.short_ns)::BIGINT AS small_count,
    coalesce(sum(g.dur) FILTER (g.dur < s.short_ns), 0)::BIGINT AS small_ns,
    arg_max(g.event_id, (g.dur, -g.ts, -g.event_id)) AS event_id,
    CASE
        WHEN g.class <> 'computation' THEN NULL
        WHEN regexp_matches(c.name, '(b|baddb)mm$|matmul$|einsum$') THEN 'product'
        WHEN regexp_matches(g.name, '(?i)softmax') AND NOT regexp_matches(g.name, '(?i)log_?softmax|flash|fmha|fwd_splitkv|attn') THEN 'softmax'
    END AS attention_part
FROM lib.scoped_gpu_ops(runs, ranks, steps, include_last_profiler_step) AS g
CROSS JOIN _limit AS s
LEFT JOIN cpu_ops AS c ON c.run = g.run AND c.rank = g.rank AND c.event_id = g.op_id
LEFT JOIN annotations AS a ON a.run = g.run AND a.rank = g.rank AND a.event_id = g.annotation_id
GROUP BY ALL
