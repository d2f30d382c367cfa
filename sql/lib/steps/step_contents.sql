-- What each step's time went to, by part, operator, shapes and kernel: what two runs are compared by.
--
-- Every nanosecond of a step is in one row. The device's work of a step is what lib.compared_windows gives it; by how
-- much that time is longer or shorter than the host's step is the part lag. A rank without device activity is told
-- by its host.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib.step_contents(
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
--   run        VARCHAR         Run name.
--   rank       INTEGER         Rank of the process.
--   step       BIGINT          Profiler step; NULL for the whole of a trace without steps.
--   part       VARCHAR         compute, transfer, wait, memory, idle, host or lag.
--   waits_for  VARCHAR         Of idle time: host (not launched yet), device (launched, not started) or unknown; else NULL.
--   operator   VARCHAR         Operator that launched it, of communication the collective, of idle time what ends it; NULL: none.
--   shapes     VARCHAR         Input shapes as JSON; of communication elements and their type; NULL if unknown.
--   kernel     VARCHAR         Short name of the kernel; NULL for idle and host time.
--   root       VARCHAR         Outermost operator around the launch; NULL: none.
--   place      VARCHAR         nn.Module around the launch, else user annotation; NULL: none.
--   category   VARCHAR         Kind of work, as in operation_categories; NULL for idle time.
--   phase      VARCHAR         forward, backward or optimizer; NULL for idle time.
--   self_ns    BIGINT [ns]     Its share of the step: rows of a step sum to its duration on the host.
--   dur_ns     BIGINT [ns]     Its duration, hidden or not; 0 for idle time.
--   op_count   BIGINT [count]  Operations that started.
WITH
    _windows AS MATERIALIZED (
        SELECT w.* FROM lib.compared_windows(runs, ranks, steps, include_last_profiler_step) AS w
    ),
    _with_device AS (
        SELECT DISTINCT g.run, g.rank FROM lib.scoped_gpu_ops(runs, ranks, NULL, true) AS g
    ),
    _on_device AS (
        SELECT w.* FROM _windows AS w SEMI JOIN _with_device AS d ON d.run = w.run AND d.rank = w.rank
    ),
    _on_host AS (
        SELECT w.* FROM _windows AS w ANTI JOIN _with_device AS d ON d.run = w.run AND d.rank = w.rank
    ),
    _shares AS MATERIALIZED (
        SELECT s.* FROM lib.step_shares('_on_device', runs, ranks) AS s
    ),
    _called AS (
        SELECT
            s.run, s.rank, s.window_no, s.part, s.waits_for, o.operator,
            CASE WHEN s.part <> 'idle' THEN o.shapes END AS shapes,
            CASE WHEN s.part <> 'idle' THEN o.kernel END AS kernel,
            CASE WHEN s.part <> 'idle' THEN o.root END AS root,
            CASE WHEN s.part <> 'idle' THEN o.place END AS place,
            CASE WHEN s.part <> 'idle' THEN o.category END AS category,
            CASE WHEN s.part <> 'idle' THEN o.phase END AS phase,
            s.ns, s.dur_ns, s.op_count
        FROM _shares AS s
        LEFT JOIN lib.compared_ops(runs, ranks) AS o ON o.run = s.run AND o.rank = s.rank AND o.event_id = s.event_id
        UNION ALL
        SELECT h.run, h.rank, h.window_no, 'host', NULL, h.operator, h.shapes, NULL, h.root, h.place, h.category, h.phase, h.ns, h.dur_ns, h.op_count
        FROM lib.host_contents('_on_host') AS h
    ),
    _summed AS (
        SELECT
            c.run, c.rank, c.window_no, c.part, c.waits_for, c.operator, c.shapes, c.kernel, c.root, c.place, c.category, c.phase,
            sum(c.ns)::BIGINT AS self_ns, sum(c.dur_ns)::BIGINT AS dur_ns, sum(c.op_count)::BIGINT AS op_count
        FROM _called AS c
        GROUP BY ALL
    ),
    _named AS (
        SELECT w.step, s.*
        FROM _summed AS s
        JOIN _windows AS w ON w.run = s.run AND w.rank = s.rank AND w.window_no = s.window_no
    ),
    _lags AS (
        SELECT w.run, w.rank, w.step, w.step_ns - (w.end_ts - w.ts) AS lag_ns FROM _on_device AS w WHERE w.step_ns <> w.end_ts - w.ts
    )
SELECT
    n.run, n.rank, n.step, n.part, n.waits_for, n.operator, n.shapes, n.kernel, n.root, n.place, n.category, n.phase,
    n.self_ns, n.dur_ns, n.op_count
FROM _named AS n
UNION ALL
SELECT l.run, l.rank, l.step, 'lag', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, l.lag_ns, 0, 0
FROM _lags AS l
