-- Host activity in given windows: self time of operators on the thread that runs the steps, and the remaining step
-- time.
--
-- Self time of an operator excludes the operators that it called, and includes its runtime calls and Python frames.
-- In a trace without steps, the thread with the most self time is used. Time outside operators is in a row without an
-- operator, so the rows of a window sum to its step time.
CREATE OR REPLACE MACRO lib._host_contents(
    -- Name of a relation with the columns of lib._compared_windows.
    some_windows
) AS TABLE
-- Columns:
--   run                   VARCHAR         Run name.
--   rank                  INTEGER         Rank of the process.
--   window_no             BIGINT [1]      Number of the window.
--   operator              VARCHAR         Stable name of the operator; NULL for time outside operators.
--   shapes                VARCHAR         Input shapes as JSON; NULL if unknown.
--   root                  VARCHAR         Outermost enclosing operator, or the operator itself.
--   module_or_annotation  VARCHAR         Enclosing nn.Module, otherwise the user annotation; NULL: none.
--   category              VARCHAR         Kind of work, as in operation_categories; other if no rule matches.
--   phase                 VARCHAR         Training phase: forward, backward or optimizer.
--   ns                    BIGINT [ns]     Self time, or the remainder of the step outside operators.
--   dur_ns                BIGINT [ns]     Duration.
--   op_count              BIGINT [count]  Number of operators that started.
WITH
    _windows AS MATERIALIZED (
        FROM query_table(some_windows)
    ),
    _ops AS MATERIALIZED (
        SELECT
            c.run, c.rank, c.pid, c.tid, c.event_id, c.name, c.input_dims, c.parent_op_id, c.module_id, c.annotation_id, c.bwd_op_id, c.step, c.dur
        FROM cpu_ops AS c
        SEMI JOIN _windows AS w ON w.run = c.run AND w.rank = c.rank
    ),
    _called AS (
        SELECT o.run, o.rank, o.parent_op_id AS event_id, sum(o.dur) AS dur FROM _ops AS o WHERE o.parent_op_id IS NOT NULL GROUP BY o.run, o.rank, o.parent_op_id
    ),
    _own AS MATERIALIZED (
        SELECT o.*, (o.dur - coalesce(d.dur, 0))::BIGINT AS own_ns
        FROM _ops AS o
        LEFT JOIN _called AS d ON d.run = o.run AND d.rank = o.rank AND d.event_id = o.event_id
    ),
    _stepping AS (
        SELECT s.run, s.rank, arg_min({'pid': s.pid, 'tid': s.tid}, (s.ts, s.step)) AS thread FROM steps AS s GROUP BY s.run, s.rank
    ),
    _busy AS (
        SELECT o.run, o.rank, o.pid, o.tid, sum(o.own_ns) AS own_ns FROM _own AS o GROUP BY o.run, o.rank, o.pid, o.tid
    ),
    _busiest AS (
        SELECT b.run, b.rank, arg_min({'pid': b.pid, 'tid': b.tid}, (-b.own_ns, b.pid, b.tid)) AS thread FROM _busy AS b GROUP BY b.run, b.rank
    ),
    _here AS MATERIALIZED (
        SELECT w.window_no, o.*
        FROM _own AS o
        JOIN _windows AS w ON w.run = o.run AND w.rank = o.rank AND w.step IS NOT DISTINCT FROM CASE WHEN w.step IS NOT NULL THEN o.step END
        JOIN _busiest AS b ON b.run = o.run AND b.rank = o.rank
        LEFT JOIN _stepping AS s ON s.run = o.run AND s.rank = o.rank
        WHERE o.pid = coalesce(s.thread, b.thread).pid AND o.tid = coalesce(s.thread, b.thread).tid
    ),
    _host_ops AS MATERIALIZED (
        SELECT h.run, h.rank, h.event_id, h.event_id AS op_id, h.module_id, h.annotation_id, h.bwd_op_id FROM _here AS h
    ),
    _described AS MATERIALIZED (
        FROM lib.described_ops('_host_ops')
    ),
    _taken AS (
        SELECT p.run, p.rank, p.window_no, sum(p.own_ns)::BIGINT AS taken_ns FROM _here AS p GROUP BY p.run, p.rank, p.window_no
    )
SELECT
    h.run, h.rank, h.window_no, d.operator, d.shapes, d.root, d.module_or_annotation,
    coalesce(d.operator_category, 'other') AS category, d.phase, h.own_ns AS ns, h.dur AS dur_ns, 1::BIGINT AS op_count
FROM _here AS h
JOIN _described AS d ON d.run = h.run AND d.rank = h.rank AND d.event_id = h.event_id
UNION ALL
SELECT w.run, w.rank, w.window_no, NULL, NULL, NULL, NULL, NULL, NULL, w.step_ns - coalesce(t.taken_ns, 0), 0, 0
FROM _windows AS w
LEFT JOIN _taken AS t ON t.run = w.run AND t.rank = w.rank AND t.window_no = w.window_no
