-- What the host's steps consist of, by name: the user's lines outside operators, and outermost operators.
--
-- The time of a line excludes the lines that it calls. An event that reaches beyond the step in which it starts counts
-- up to the end of the step.
CREATE OR REPLACE MACRO lib._part_names(
    -- Name of a relation with the columns of lib.host_steps.
    host_rows
) AS TABLE
-- Columns:
--   run   VARCHAR      Run name.
--   rank  INTEGER      Rank of the process.
--   part  VARCHAR      forward, backward or other, as in lib.host_steps.
--   name  VARCHAR      Operator, or for other a frame of the user's code.
--   ns    BIGINT [ns]  Time within the steps.
WITH
    _windows AS MATERIALIZED (
        SELECT h.run, h.rank, h.step, h.ts AS from_ts, h.ts + h.step_ns AS to_ts, h.pid, h.tid FROM query_table(host_rows) AS h
    ),
    _ranks AS (
        SELECT DISTINCT w.run, w.rank FROM _windows AS w
    ),
    _spans AS (
        SELECT p.run, p.rank, p.step, p.ts, p.ts + p.dur AS end_ts, p.pid, p.tid, p.stack_id, NULL AS part, NULL AS name
        FROM python_calls AS p
        WHERE p.op_id IS NULL
        UNION ALL
        SELECT a.run, a.rank, a.step, a.ts, a.ts + a.dur, a.pid, a.tid, a.stack_id, NULL, NULL
        FROM annotations AS a
        WHERE NOT a.on_gpu AND a.op_id IS NULL
        UNION ALL
        SELECT
            c.run, c.rank, c.step, c.ts, c.ts + c.dur, c.pid, c.tid, c.stack_id,
            CASE WHEN starts_with(c.name, 'autograd::engine::evaluate_function: ') THEN 'backward' ELSE 'forward' END, c.name
        FROM cpu_ops AS c
        WHERE c.parent_op_id IS NULL
    ),
    -- Events that are open when the first step begins are in no step.
    _clipped AS (
        SELECT
            s.run, s.rank, s.stack_id, s.part, s.name, s.pid IS NOT DISTINCT FROM w.pid AND s.tid IS NOT DISTINCT FROM w.tid AS is_stepping,
            least(s.end_ts, w.to_ts) - greatest(s.ts, w.from_ts) AS ns
        FROM _spans AS s
        JOIN _windows AS w ON w.run = s.run AND w.rank = s.rank AND w.step = s.step
        UNION ALL
        SELECT
            s.run, s.rank, s.stack_id, s.part, s.name, s.pid IS NOT DISTINCT FROM w.pid AND s.tid IS NOT DISTINCT FROM w.tid,
            least(s.end_ts, w.to_ts) - greatest(s.ts, w.from_ts)
        FROM _spans AS s
        JOIN _windows AS w ON w.run = s.run AND w.rank = s.rank AND s.ts < w.to_ts AND s.end_ts > w.from_ts
        WHERE s.step IS NULL
    ),
    _summed AS MATERIALIZED (
        SELECT c.run, c.rank, c.stack_id, c.part, c.name, sum(c.ns)::BIGINT AS ns
        FROM _clipped AS c
        WHERE c.ns > 0 AND (c.is_stepping OR c.part = 'backward')
        GROUP BY ALL
    ),
    _lines AS MATERIALIZED (
        FROM lib.user_lines('_ranks')
    ),
    -- The time of a stack without that of the stacks below it.
    _own AS (
        SELECT l.run, l.rank, l.line, s.ns
        FROM _summed AS s
        JOIN _lines AS l ON l.run = s.run AND l.rank = s.rank AND l.stack_id = s.stack_id
        WHERE l.is_other
        UNION ALL
        SELECT p.run, p.rank, p.line, -s.ns
        FROM _summed AS s
        JOIN _lines AS l ON l.run = s.run AND l.rank = s.rank AND l.stack_id = s.stack_id
        JOIN _lines AS p ON p.run = l.run AND p.rank = l.rank AND p.stack_id = l.parent_stack_id
        WHERE p.is_other
    )
SELECT s.run, s.rank, s.part, s.name, sum(s.ns)::BIGINT AS ns
FROM _summed AS s
WHERE s.part IS NOT NULL
GROUP BY s.run, s.rank, s.part, s.name
UNION ALL
SELECT o.run, o.rank, 'other', o.line, sum(o.ns)::BIGINT
FROM _own AS o
WHERE o.line IS NOT NULL
GROUP BY o.run, o.rank, o.line
