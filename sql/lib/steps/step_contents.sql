-- Step time by part, operator, shapes and kernel: the rows by which two runs are compared.
--
-- Every nanosecond of a step is in exactly one row. A step contains the operations that it launched, whenever they
-- run. Operations in its window (lib._compared_windows) that were launched outside steps, or have no launch in the
-- trace, form the part other. The difference between the duration of the step on the host and the sum of these rows
-- is the part lag. For a rank without device activity, rows describe the host.
CREATE OR REPLACE MACRO lib.step_contents(
    runs,
    ranks,
    -- Profiler steps to include; NULL means every step, or the whole trace if it has no steps.
    steps,
    include_last_profiler_step
) AS TABLE
-- Columns: those of step_contents_v1.
WITH
    _windows AS MATERIALIZED (
        SELECT w.* FROM lib._compared_windows(runs, ranks) AS w
    ),
    _ops AS MATERIALIZED (
        SELECT g.run, g.rank, g.span, g.event_id, g.step, g.launch_id IS NOT NULL AS is_launched
        FROM lib.launched_gpu_ops(runs, ranks, NULL, true) AS g
    ),
    _with_device AS (
        SELECT DISTINCT g.run, g.rank FROM _ops AS g
    ),
    _on_device AS (
        SELECT w.* FROM _windows AS w SEMI JOIN _with_device AS d ON d.run = w.run AND d.rank = w.rank
    ),
    _on_host AS (
        SELECT w.* FROM _windows AS w ANTI JOIN _with_device AS d ON d.run = w.run AND d.rank = w.rank
    ),
    _shares AS MATERIALIZED (
        SELECT s.* FROM lib._step_shares('_on_device', runs, ranks) AS s
    ),
    -- If several windows belong to the same step, take the first.
    _owners AS (
        SELECT w.run, w.rank, w.span, w.step, min(w.window_no) AS window_no
        FROM _on_device AS w
        WHERE w.step IS NOT NULL
        GROUP BY w.run, w.rank, w.span, w.step
    ),
    _owned AS (
        SELECT
            s.run, s.rank, s.event_id, s.waits_for, s.ns, s.dur_ns, s.op_count,
            s.part NOT IN ('idle', 'unrecorded') AND w.step IS NOT NULL AND n.window_no IS NULL AS is_other,
            CASE WHEN is_other THEN 'other' ELSE s.part END AS part,
            CASE WHEN s.part IN ('idle', 'unrecorded') OR is_other OR w.step IS NOT DISTINCT FROM g.step THEN s.window_no ELSE coalesce(n.window_no, s.window_no) END AS window_no,
            CASE WHEN g.is_launched THEN '[outside of steps]' ELSE '[no launch]' END AS of_nothing
        FROM _shares AS s
        JOIN _on_device AS w ON w.run = s.run AND w.rank = s.rank AND w.window_no = s.window_no
        LEFT JOIN _ops AS g ON g.run = s.run AND g.rank = s.rank AND g.event_id = s.event_id
        LEFT JOIN _owners AS n ON n.run = g.run AND n.rank = g.rank AND n.span = g.span AND n.step = g.step
    ),
    _called AS (
        SELECT
            s.run, s.rank, s.window_no, s.part, s.waits_for, CASE WHEN s.is_other THEN s.of_nothing ELSE o.operator END AS operator,
            CASE WHEN s.part NOT IN ('idle', 'other') THEN o.shapes END AS shapes,
            CASE WHEN s.part <> 'idle' THEN o.kernel END AS kernel,
            CASE WHEN s.part NOT IN ('idle', 'other') THEN o.root END AS root,
            CASE WHEN s.part NOT IN ('idle', 'other') THEN o.module_or_annotation END AS module_or_annotation,
            CASE WHEN s.part <> 'idle' THEN o.category END AS category,
            CASE WHEN s.part <> 'idle' THEN o.phase END AS phase,
            s.ns, s.dur_ns, s.op_count
        FROM _owned AS s
        LEFT JOIN lib._compared_ops(runs, ranks) AS o ON o.run = s.run AND o.rank = s.rank AND o.event_id = s.event_id
        UNION ALL
        SELECT h.run, h.rank, h.window_no, 'host', NULL, h.operator, h.shapes, NULL, h.root, h.module_or_annotation, h.category, h.phase, h.ns, h.dur_ns, h.op_count
        FROM lib._host_contents('_on_host') AS h
    ),
    _summed AS (
        SELECT
            c.run, c.rank, c.window_no, c.part, c.waits_for, c.operator, c.shapes, c.kernel, c.root, c.module_or_annotation, c.category, c.phase,
            sum(c.ns)::BIGINT AS self_ns, sum(c.dur_ns)::BIGINT AS dur_ns, sum(c.op_count)::BIGINT AS op_count
        FROM _called AS c
        GROUP BY ALL
    ),
    _named AS (
        SELECT w.step, w.is_dropped, s.*
        FROM _summed AS s
        JOIN _windows AS w ON w.run = s.run AND w.rank = s.rank AND w.window_no = s.window_no
    ),
    _totals AS (
        SELECT s.run, s.rank, s.window_no, sum(s.self_ns)::BIGINT AS total_ns FROM _summed AS s GROUP BY s.run, s.rank, s.window_no
    ),
    _lags AS (
        SELECT w.run, w.rank, w.step, w.is_dropped, w.step_ns - coalesce(t.total_ns, 0) AS lag_ns
        FROM _on_device AS w
        LEFT JOIN _totals AS t ON t.run = w.run AND t.rank = w.rank AND t.window_no = w.window_no
        WHERE w.step_ns <> coalesce(t.total_ns, 0)
    )
SELECT
    n.run, n.rank, n.step, n.part, n.waits_for, n.operator, n.shapes, n.kernel, n.root, n.module_or_annotation, n.category, n.phase,
    n.self_ns, n.dur_ns, n.op_count
FROM _named AS n
WHERE lib.is_requested(steps, n.step) AND (include_last_profiler_step OR NOT n.is_dropped)
UNION ALL
SELECT l.run, l.rank, l.step, 'lag', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, l.lag_ns, 0, 0
FROM _lags AS l
WHERE lib.is_requested(steps, l.step) AND (include_last_profiler_step OR NOT l.is_dropped)
