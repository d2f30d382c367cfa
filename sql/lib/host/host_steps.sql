-- Where each step goes on the thread that runs the steps: seven parts that are mutually exclusive and sum to the step.
--
-- Each moment counts toward the first part that applies: data loading, synchronization, communication, backward,
-- optimizer, other operators, gloo in the background (communication), other. In a trace without steps, the thread is
-- the one with the most time in operators. Backward operators count on any thread, because a device has its own.
CREATE OR REPLACE MACRO lib.host_steps(
    runs,
    ranks,
    -- Profiler steps to include; NULL means every step, or the whole trace if it has no steps.
    steps,
    include_last_profiler_step
) AS TABLE
-- Columns:
--   run                 VARCHAR      Run name.
--   rank                INTEGER      Rank of the process.
--   step                BIGINT       Profiler step; NULL if the trace has no steps and the row covers all of it.
--   ts                  BIGINT [ns]  Start of the step on the host, relative to the run's first event.
--   step_ns             BIGINT [ns]  Duration of the step on the host.
--   data_loading_ns     BIGINT [ns]  Time with a data loader open.
--   synchronization_ns  BIGINT [ns]  Time in calls and operators that wait for a device or read a value from it.
--   communication_ns    BIGINT [ns]  Time in operators that communicate, and time in which only gloo runs.
--   backward_ns         BIGINT [ns]  Time in operators of autograd's backward pass.
--   optimizer_ns        BIGINT [ns]  Time in the annotations of an optimizer.
--   forward_ns          BIGINT [ns]  Time in other operators.
--   other_ns            BIGINT [ns]  Remaining time.
--   pid                 BIGINT       Process id of the thread; NULL if no thread runs steps or operators.
--   tid                 BIGINT       Thread id.
WITH
    _steps AS MATERIALIZED (
        SELECT p.run, p.rank, p.step, p.ts AS from_ts, p.ts + p.step_ns AS to_ts
        FROM lib.scoped_steps(runs, ranks, steps, include_last_profiler_step) AS p
    ),
    _outermost AS MATERIALIZED (
        SELECT c.run, c.rank, c.pid, c.tid, c.name, c.ts, c.dur
        FROM cpu_ops AS c
        WHERE c.parent_op_id IS NULL AND c.dur > 0 AND lib.is_requested(runs, c.run) AND lib.is_requested(ranks, c.rank)
    ),
    _threads AS MATERIALIZED (
        SELECT t.run, t.rank, {'pid': t.pid, 'tid': t.tid} AS thread FROM lib.step_threads(runs, ranks) AS t
    ),
    -- Thread NULL: the time counts whatever thread it is on.
    _found AS (
        SELECT a.run, a.rank, a.ts, a.dur, {'pid': a.pid, 'tid': a.tid} AS thread, CASE WHEN lib.loads_data(a.name) THEN 1 ELSE 5 END AS layer
        FROM annotations AS a
        WHERE
            NOT a.on_gpu AND a.dur > 0 AND (lib.loads_data(a.name) OR starts_with(a.name, 'Optimizer.'))
            AND lib.is_requested(runs, a.run) AND lib.is_requested(ranks, a.rank)
        UNION ALL
        SELECT p.run, p.rank, p.ts, p.dur, {'pid': p.pid, 'tid': p.tid}, 1
        FROM python_calls AS p
        WHERE contains(p.name, 'torch/utils/data/') AND p.dur > 0 AND lib.is_requested(runs, p.run) AND lib.is_requested(ranks, p.rank)
        UNION ALL
        SELECT b.run, b.rank, b.ts, b.end_ts - b.ts, {'pid': b.pid, 'tid': b.tid}, 2
        FROM lib.blocking_calls(runs, ranks) AS b
        UNION ALL
        SELECT c.run, c.rank, c.ts, c.dur, {'pid': c.pid, 'tid': c.tid}, 2
        FROM cpu_ops AS c
        WHERE c.name IN ('aten::item', 'aten::is_nonzero') AND c.dur > 0 AND lib.is_requested(runs, c.run) AND lib.is_requested(ranks, c.rank)
        UNION ALL
        SELECT c.run, c.rank, c.ts, c.dur, {'pid': c.pid, 'tid': c.tid}, 3
        FROM cpu_ops AS c
        WHERE lib.communicates(c.name) AND c.dur > 0 AND lib.is_requested(runs, c.run) AND lib.is_requested(ranks, c.rank)
        UNION ALL
        SELECT o.run, o.rank, o.ts, o.dur, NULL, 4 FROM _outermost AS o WHERE starts_with(o.name, 'autograd::engine::evaluate_function: ')
        UNION ALL
        SELECT o.run, o.rank, o.ts, o.dur, {'pid': o.pid, 'tid': o.tid}, CASE WHEN starts_with(o.name, 'enumerate(Data') THEN 1 ELSE 6 END
        FROM _outermost AS o
        UNION ALL
        SELECT m.run, m.rank, m.ts, m.dur, NULL, 7 FROM lib.swept_collectives(runs, ranks) AS m WHERE m.on_host
    ),
    _spans AS (
        SELECT f.run, f.rank, f.ts, f.dur, f.layer
        FROM _found AS f
        JOIN _threads AS t ON t.run = f.run AND t.rank = f.rank
        WHERE f.thread IS NULL OR f.thread IS NOT DISTINCT FROM t.thread
    ),
    _parts AS (
        SELECT
            p.run, p.rank, p.step,
            sum(CASE WHEN p.layer = 1 THEN p.ns ELSE 0 END)::BIGINT AS data_loading_ns,
            sum(CASE WHEN p.layer = 2 THEN p.ns ELSE 0 END)::BIGINT AS synchronization_ns,
            sum(CASE WHEN p.layer IN (3, 7) THEN p.ns ELSE 0 END)::BIGINT AS communication_ns,
            sum(CASE WHEN p.layer = 4 THEN p.ns ELSE 0 END)::BIGINT AS backward_ns,
            sum(CASE WHEN p.layer = 5 THEN p.ns ELSE 0 END)::BIGINT AS optimizer_ns,
            sum(CASE WHEN p.layer = 6 THEN p.ns ELSE 0 END)::BIGINT AS forward_ns,
            sum(p.ns)::BIGINT AS known_ns
        FROM lib.layers_in_steps('_steps', '_spans') AS p
        GROUP BY p.run, p.rank, p.step
    )
SELECT
    s.run, s.rank, s.step, s.from_ts AS ts, s.to_ts - s.from_ts AS step_ns,
    coalesce(p.data_loading_ns, 0) AS data_loading_ns,
    coalesce(p.synchronization_ns, 0) AS synchronization_ns,
    coalesce(p.communication_ns, 0) AS communication_ns,
    coalesce(p.backward_ns, 0) AS backward_ns,
    coalesce(p.optimizer_ns, 0) AS optimizer_ns,
    coalesce(p.forward_ns, 0) AS forward_ns,
    s.to_ts - s.from_ts - coalesce(p.known_ns, 0) AS other_ns,
    t.thread.pid AS pid, t.thread.tid AS tid
FROM _steps AS s
LEFT JOIN _threads AS t ON t.run = s.run AND t.rank = s.rank
LEFT JOIN _parts AS p ON p.run = s.run AND p.rank = s.rank AND p.step IS NOT DISTINCT FROM s.step
