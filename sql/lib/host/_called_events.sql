-- Every host event that torch's profiler counts as a call, with its grouping keys: operators, annotations, Python
-- frames and runtime calls.
--
-- Keys that are not requested are NULL and are not read.
CREATE OR REPLACE MACRO lib._called_events(
    runs,
    ranks,
    -- Whether to read shapes.
    with_shapes,
    -- Whether to read call stacks.
    with_stacks
) AS TABLE
-- Columns:
--   run              VARCHAR      Run name.
--   rank             INTEGER      Rank of the process.
--   event_id         BIGINT       Position of the event in traceEvents.
--   parent_id        BIGINT       event_id of the innermost enclosing event.
--   kind             VARCHAR      operator, annotation, frame or runtime.
--   name             VARCHAR      Recorded name.
--   ts               BIGINT [ns]  Start, relative to the run's first event.
--   dur              BIGINT [ns]  Recorded duration.
--   pid              BIGINT       Process id.
--   tid              BIGINT       Thread id.
--   step             BIGINT       Profiler step in which the event started; NULL outside steps.
--   in_last_step     BOOLEAN      Whether it starts in or after the rank's last step; excluded by default.
--   module_id        BIGINT       event_id of the innermost enclosing nn.Module call; NULL for annotations.
--   input_dims       VARCHAR      Input shapes as JSON.
--   input_types      VARCHAR      Input types as JSON; for operators only, as in the following columns up to fwd_thread_id.
--   concrete_inputs  VARCHAR      Scalar inputs as JSON.
--   sequence_number  BIGINT       Autograd sequence number; -1: none.
--   fwd_thread_id    BIGINT       Autograd's number of the forward thread; 0: none.
--   call_stack       VARCHAR      Recorded frames, innermost first, separated by semicolons.
--   stack_id         BIGINT       Row of stacks that names the event and its enclosing events.
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
