-- Advice: convolutions spend at least 0.5 % of step time on a bias that the following batch norm removes.
--
-- The pattern is torch's Conv2dBiasFollowedByBatchNorm2dPattern. A convolution with a bias (its third input) is
-- followed by a batch norm with the same number of channels; only the increment of num_batches_tracked may come
-- between the two. The cost is the time of the kernels that add the bias and, as an upper bound, of the kernels that
-- sum bias gradients in the backward pass of all convolutions. If the convolution kernel itself adds the bias, there
-- is nothing to save.
CREATE OR REPLACE MACRO lib._advice_conv_bias(
    -- Name of a relation with the columns of lib.step_sums.
    spans,
    runs,
    ranks,
    -- Profiler steps to include; NULL means every step.
    steps,
    include_last_profiler_step
) AS TABLE
-- Columns: those of _advice_by_rule.
WITH
    _layers AS (
        SELECT
            c.run, c.rank, c.span, c.pid, c.tid, coalesce(c.parent_op_id, -1) AS parent_op_id, c.event_id, c.ts, c.ts + c.dur AS end_ts, c.name,
            json_extract_string(c.input_dims, CASE WHEN c.name = 'aten::batch_norm' THEN '$[0][1]' ELSE '$[2][0]' END) AS channels
        FROM cpu_ops AS c
        WHERE
            c.name IN ('aten::conv1d', 'aten::conv2d', 'aten::conv3d', 'aten::batch_norm') AND json_valid(c.input_dims)
            AND lib.is_requested(runs, c.run) AND lib.is_requested(ranks, c.rank)
    ),
    _next AS (
        SELECT n.*, lead({'name': n.name, 'channels': n.channels, 'ts': n.ts}) OVER beside AS behind
        FROM _layers AS n
        WINDOW beside AS (PARTITION BY n.run, n.rank, n.span, n.pid, n.tid, n.parent_op_id ORDER BY n.ts, n.event_id)
    ),
    _pairs AS MATERIALIZED (
        SELECT n.run, n.rank, n.pid, n.tid, n.parent_op_id, n.event_id, n.ts, n.end_ts, n.behind.ts AS norm_ts
        FROM _next AS n
        WHERE n.name <> 'aten::batch_norm' AND n.behind.name = 'aten::batch_norm' AND n.behind.channels = n.channels
    ),
    -- The last operator before the norm, among its siblings in the call tree and ignoring the increment of
    -- num_batches_tracked, must be the convolution.
    _others AS (
        SELECT c.run, c.rank, c.pid, c.tid, coalesce(c.parent_op_id, -1) AS parent_op_id, c.event_id, c.ts
        FROM cpu_ops AS c
        SEMI JOIN _pairs AS p ON p.run = c.run AND p.rank = c.rank AND p.tid = c.tid AND p.parent_op_id = coalesce(c.parent_op_id, -1)
        WHERE NOT (c.name IN ('aten::add_', 'aten::add') AND starts_with(coalesce(c.input_dims, ''), '[[]'))
    ),
    _biased AS MATERIALIZED (
        SELECT p.*
        FROM _pairs AS p
        ASOF JOIN _others AS o ON o.run = p.run AND o.rank = p.rank AND o.pid = p.pid AND o.tid = p.tid AND o.parent_op_id = p.parent_op_id AND p.norm_ts > o.ts
        WHERE o.event_id = p.event_id
    ),
    _counts AS (
        SELECT b.run, b.rank, count(*) AS event_count, arg_min(b.event_id, (b.ts, b.event_id)) AS event_id
        FROM _biased AS b
        GROUP BY b.run, b.rank
    ),
    _kernels AS (
        SELECT g.run, g.rank, g.dur, g.launch_ts, g.name, c.name AS op_name, c.pid, c.tid
        FROM lib.scoped_gpu_ops(runs, ranks, steps, include_last_profiler_step) AS g
        JOIN cpu_ops AS c ON c.run = g.run AND c.rank = g.rank AND c.event_id = g.op_id
        SEMI JOIN _counts AS n ON n.run = g.run AND n.rank = g.rank
        WHERE g.class = 'computation' AND c.name IN ('aten::add_', 'aten::convolution_backward')
    ),
    _added AS (
        SELECT k.run, k.rank, k.dur
        FROM _kernels AS k
        ASOF JOIN _biased AS b ON b.run = k.run AND b.rank = k.rank AND b.pid = k.pid AND b.tid = k.tid AND k.launch_ts >= b.ts
        WHERE k.op_name = 'aten::add_' AND k.launch_ts < b.end_ts
        UNION ALL
        SELECT k.run, k.rank, k.dur
        FROM _kernels AS k
        WHERE k.op_name = 'aten::convolution_backward' AND contains(k.name, 'reduce_kernel')
    ),
    _found AS (
        SELECT a.run, a.rank, sum(a.dur)::BIGINT AS affected_ns
        FROM _added AS a
        GROUP BY a.run, a.rank
    )
SELECT
    f.run, f.rank, 'conv_bias' AS rule, 'aten::conv' AS subject, n.event_count, f.affected_ns, least(f.affected_ns, s.compute_ns) AS saved_ns, 'high' AS confidence, n.event_id,
    lib.message('advice.conv_bias', {'convolution_count': n.event_count, 'share_pct': 100 * (f.affected_ns / nullif(s.recorded_ns, 0))}) AS message,
    format('FROM cpu_ops WHERE run = {} AND rank = {} AND name IN (''aten::conv1d'', ''aten::conv2d'', ''aten::conv3d'', ''aten::batch_norm'') ORDER BY ts', lib.sql_literal(f.run), f.rank) AS evidence_sql,
    'operator_unique_args' AS next_analysis
FROM _found AS f
JOIN _counts AS n ON n.run = f.run AND n.rank = f.rank
JOIN query_table(spans) AS s ON s.run = f.run AND s.rank = f.rank
WHERE least(f.affected_ns, s.compute_ns) >= 0.005 * s.recorded_ns
