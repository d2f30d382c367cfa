-- Everything that torch's profiler counts as a call on the host, with what calls are told apart by: operators,
-- annotations, Python frames and calls of the runtime.
--
-- What is not asked for is NULL and not read.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib._called_events(
    -- Runs to include; NULL means every run.
    runs,
    -- Ranks to include; NULL means every rank.
    ranks,
    -- Whether shapes are wanted.
    with_shapes,
    -- Whether call stacks are wanted.
    with_stacks
) AS TABLE
-- Columns:
--   run              VARCHAR      Run name.
--   rank             INTEGER      Rank of the process.
--   event_id         BIGINT       Position of the event in traceEvents.
--   parent_id        BIGINT       The nearest event that encloses it.
--   kind             VARCHAR      operator, annotation, frame or runtime.
--   name             VARCHAR      Name as recorded.
--   ts               BIGINT [ns]  Start since the run's first event.
--   dur              BIGINT [ns]  Duration, as recorded.
--   pid              BIGINT       Process id.
--   tid              BIGINT       Thread id.
--   step             BIGINT       Profiler step in which the event started; NULL outside steps.
--   in_last_step     BOOLEAN      Whether it is left out by default.
--   module_id        BIGINT       event_id of the nearest nn.Module call around it; NULL for annotations.
--   input_dims       VARCHAR      Input shapes as JSON.
--   input_types      VARCHAR      Input types as JSON; of operators only, like what follows but the stack.
--   concrete_inputs  VARCHAR      Scalar inputs as JSON.
--   sequence_number  BIGINT       Autograd sequence number; -1: none.
--   fwd_thread_id    BIGINT       Autograd's number of the forward thread; 0: none.
--   call_stack       VARCHAR      Frames as recorded, the innermost first, with semicolons between them.
--   stack_id         BIGINT       The names around it and its own, as a row of stacks.
WITH
    _calls AS NOT MATERIALIZED (
        SELECT
            c.run, c.rank, c.event_id, c.parent_id, 'operator' AS kind, c.name, c.ts, c.dur, c.pid, c.tid, c.step, c.in_last_step,
            c.module_id, CASE WHEN with_shapes THEN c.input_dims END AS input_dims, c.input_types, c.concrete_inputs,
            c.sequence_number, c.fwd_thread_id, CASE WHEN with_stacks THEN c.call_stack END AS call_stack, c.stack_id
        FROM cpu_ops AS c
        UNION ALL BY NAME
        SELECT
            a.run, a.rank, a.event_id, a.parent_id, 'annotation' AS kind, a.name, a.ts, a.dur, a.pid, a.tid, a.step, a.in_last_step,
            CASE WHEN with_shapes THEN a.input_dims END AS input_dims, CASE WHEN with_stacks THEN a.call_stack END AS call_stack,
            a.stack_id
        FROM annotations AS a
        WHERE NOT a.on_gpu
        UNION ALL BY NAME
        SELECT
            p.run, p.rank, p.event_id, p.parent_id, 'frame' AS kind, p.name, p.ts, p.dur, p.pid, p.tid, p.step, p.in_last_step,
            p.parent_module_id AS module_id, CASE WHEN with_stacks THEN p.call_stack END AS call_stack, p.stack_id
        FROM python_calls AS p
        UNION ALL BY NAME
        SELECT
            r.run, r.rank, r.event_id, r.parent_id, 'runtime' AS kind, r.name, r.ts, r.dur, r.pid, r.tid, r.step, r.in_last_step,
            r.module_id, r.stack_id
        FROM runtime_calls AS r
    )
SELECT c.*
FROM _calls AS c
WHERE lib.is_requested(runs, c.run) AND lib.is_requested(ranks, c.rank)
