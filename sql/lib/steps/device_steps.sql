-- Consecutive steps of each rank on its device, covering all activity.
--
-- A step begins with the host step, or when the previous step ends on the device if that is later. It ends with the
-- host step, or with the last operation launched in it if that is later. Steps of a rank therefore do not overlap,
-- and contain all activity that runs during them, regardless of what launched it. A trace without steps is one step.
--
-- Reference: TensorBoard profiler plugin, steps of its overview
CREATE OR REPLACE MACRO lib.device_steps(
    runs,
    ranks,
    -- Profiler steps to include; NULL means every step, or the whole trace if it has no steps.
    steps,
    include_last_profiler_step
) AS TABLE
-- Columns:
--   run      VARCHAR      Run name.
--   rank     INTEGER      Rank of the process.
--   span     INTEGER      Recording of the rank.
--   step     BIGINT       Profiler step; NULL if the trace has no steps and the row covers all of it.
--   is_last  BOOLEAN      Whether this is the rank's last step.
--   from_ts  BIGINT [ns]  Start time.
--   to_ts    BIGINT [ns]  End of the step, not before its start.
--   host_ts  BIGINT [ns]  Start of the step on the host.
--   step_ns  BIGINT [ns]  Duration of the step on the host.
WITH
    _launched AS (
        SELECT o.run, o.rank, o.span, o.step, max(o.ts + o.dur) AS end_ts
        FROM lib.launched_gpu_ops(runs, ranks, NULL, true) AS o
        GROUP BY o.run, o.rank, o.span, o.step
    ),
    _bounds AS (
        SELECT p.run, p.rank, p.span, p.step, p.is_last, p.ts, p.step_ns, greatest(p.ts + p.step_ns, coalesce(o.end_ts, p.ts)) AS end_ts
        FROM lib.scoped_steps(runs, ranks, NULL, true) AS p
        LEFT JOIN _launched AS o ON o.run = p.run AND o.rank = p.rank AND o.span = p.span AND o.step = p.step
    ),
    _followed AS (
        SELECT
            b.run, b.rank, b.span, b.step, b.is_last, b.ts AS host_ts, b.step_ns,
            greatest(b.ts, coalesce(max(b.end_ts) OVER earlier, b.ts)) AS from_ts,
            greatest(b.end_ts, coalesce(max(b.end_ts) OVER earlier, b.ts)) AS to_ts
        FROM _bounds AS b
        WINDOW earlier AS (PARTITION BY b.run, b.rank, b.span ORDER BY b.ts, b.step ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
    )
SELECT f.run, f.rank, f.span, f.step, f.is_last, f.from_ts, f.to_ts, f.host_ts, f.step_ns
FROM _followed AS f
JOIN rank_spans AS k ON k.run = f.run AND k.rank = f.rank AND k.span = f.span
WHERE lib.is_requested(steps, f.step) AND (include_last_profiler_step OR NOT (f.is_last AND k.drops_last_step))
