-- Advice: exposed communication of SyncBatchNorm takes at least 2 % of step time.
--
-- Each layer sends a few bytes per channel in the forward and in the backward pass, and compute waits for these
-- messages.
CREATE OR REPLACE MACRO lib._advice_sync_batch_norm(
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
    _norms AS (
        SELECT c.run, c.rank, c.pid, c.tid, c.ts, c.ts + c.dur AS end_ts
        FROM cpu_ops AS c
        WHERE regexp_matches(c.name, '^SyncBatchNorm(Backward)?$') AND lib.is_requested(runs, c.run) AND lib.is_requested(ranks, c.rank)
    ),
    _sent AS (
        SELECT g.run, g.rank, g.name, g.ts, g.dur, g.event_id
        FROM lib.scoped_gpu_ops(runs, ranks, steps, include_last_profiler_step) AS g
        ASOF JOIN _norms AS n ON n.run = g.run AND n.rank = g.rank AND n.pid = g.launch_pid AND n.tid = g.launch_tid AND g.launch_ts >= n.ts
        WHERE g.class = 'communication' AND g.launch_ts < n.end_ts
    ),
    _found AS (
        SELECT
            s.run, s.rank, arg_max(s.name, (s.dur, -s.ts, -s.event_id)) AS kernel, count(*) AS event_count, sum(s.dur)::BIGINT AS affected_ns,
            arg_max(s.event_id, (s.dur, -s.ts, -s.event_id)) AS event_id
        FROM _sent AS s
        GROUP BY s.run, s.rank
    )
SELECT
    f.run, f.rank, 'sync_batch_norm' AS rule, 'SyncBatchNorm' AS subject, f.event_count, f.affected_ns,
    least(f.affected_ns, s.transfer_ns + s.unmatched_ns + s.wait_ns) AS saved_ns, 'high' AS confidence, f.event_id,
    lib.message('advice.sync_batch_norm', {'collective_count': f.event_count, 'mean_ns': f.affected_ns / f.event_count, 'share_pct': 100 * (f.affected_ns / nullif(s.recorded_ns, 0))}) AS message,
    format('FROM gpu_ops WHERE run = {} AND rank = {} AND name = {} ORDER BY dur', lib.sql_literal(f.run), f.rank, lib.sql_literal(f.kernel)) AS evidence_sql,
    'process_group_costs' AS next_analysis
FROM _found AS f
JOIN query_table(spans) AS s ON s.run = f.run AND s.rank = f.rank
WHERE least(f.affected_ns, s.transfer_ns + s.unmatched_ns + s.wait_ns) >= 0.02 * s.recorded_ns
