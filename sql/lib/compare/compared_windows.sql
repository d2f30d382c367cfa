-- The windows in which steps are compared: of each step the time of the device's work, in the order of the host's.
--
-- A device runs behind its host, at times a whole step, so that the host's steps cut its work at a place that
-- wanders. So a window goes from the first operation that a step launched to the first one that the next step
-- launched; the last step of a rank ends with the host's, or with its own last operation. Where a run has one step,
-- a step of it launched nothing, or these borders are not in order, all windows of the run are the host's steps, each up to
-- the start of the next.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib.compared_windows(
    -- Runs to include; NULL means every run.
    runs,
    -- Ranks to include; NULL means every rank.
    ranks,
    -- Profiler steps to include; NULL means every step and the whole of traces without steps.
    steps,
    -- Whether to include the last profiler step of a run with two or more.
    include_last_profiler_step
) AS TABLE
-- Columns:
--   run        VARCHAR      Run name.
--   rank       INTEGER      Rank of the process.
--   span       INTEGER      Recording of the rank.
--   step       BIGINT       Profiler step; NULL for the whole of a trace without steps.
--   window_no  BIGINT [1]   Number of the window in its rank, from 1 on.
--   ts         BIGINT [ns]  Start.
--   end_ts     BIGINT [ns]  End, not before the start; windows of a rank do not overlap.
--   step_ns    BIGINT [ns]  Duration of the step on the host.
WITH
    _launched AS (
        SELECT g.run, g.rank, g.span, g.step, min(g.ts) AS first_ts, max(g.ts + g.dur) AS last_end
        FROM lib.scoped_gpu_ops(runs, NULL, NULL, true) AS g
        WHERE g.launch_id IS NOT NULL AND g.dur > 0
        GROUP BY g.run, g.rank, g.span, g.step
    ),
    _bounds AS (
        SELECT
            p.run, p.rank, p.span, p.step, p.is_last, p.step_ns, p.ts, p.ts + p.step_ns AS host_end, o.first_ts, o.last_end,
            lead(p.ts) OVER following AS next_ts,
            lead(o.first_ts) OVER following AS next_first
        FROM lib.scoped_steps(runs, NULL, NULL, true) AS p
        LEFT JOIN _launched AS o ON o.run = p.run AND o.rank = p.rank AND o.span = p.span AND o.step = p.step
        WINDOW following AS (PARTITION BY p.run, p.rank, p.span ORDER BY p.ts, p.step)
    ),
    _bordered AS (
        SELECT
            b.*,
            CASE WHEN b.next_ts IS NULL THEN greatest(b.host_end, b.last_end) ELSE b.next_first END AS device_end,
            least(b.host_end, coalesce(b.next_ts, b.host_end)) AS cut_end
        FROM _bounds AS b
    ),
    _usable AS (
        SELECT b.run, b.span
        FROM _bordered AS b
        WHERE b.step IS NOT NULL
        GROUP BY b.run, b.span
        HAVING count(DISTINCT b.step) > 1 AND bool_and(coalesce(b.device_end >= b.first_ts, false))
    )
SELECT
    b.run,
    b.rank,
    b.span,
    b.step,
    row_number() OVER (PARTITION BY b.run, b.rank ORDER BY b.ts, b.step) AS window_no,
    CASE WHEN u.run IS NOT NULL THEN b.first_ts ELSE b.ts END AS ts,
    CASE WHEN u.run IS NOT NULL THEN b.device_end ELSE b.cut_end END AS end_ts,
    b.step_ns
FROM _bordered AS b
JOIN rank_spans AS k ON k.run = b.run AND k.rank = b.rank AND k.span = b.span
LEFT JOIN _usable AS u ON u.run = b.run AND u.span = b.span
WHERE lib.wanted(ranks, b.rank) AND lib.wanted(steps, b.step) AND (include_last_profiler_step OR NOT (b.is_last AND k.drops_last_step))
