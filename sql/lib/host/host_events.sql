-- Every event with a duration on a host thread, from four tables, with its current Kineto category: operators,
-- runtime calls, annotations and Python calls.
--
-- Device copies of annotations are excluded. Columns that a query does not use are not read.
CREATE OR REPLACE MACRO lib.host_events(
    runs,
    ranks
) AS TABLE
-- Columns:
--   run               VARCHAR          Run name.
--   rank              INTEGER          Rank of the process.
--   event_id          BIGINT           Position of the event in traceEvents.
--   table_name        VARCHAR          Table with the event's other columns.
--   category          VARCHAR          cpu_op, user_annotation, python_function, or the trace's category of a runtime call.
--   name              VARCHAR          Name of the event.
--   ts                BIGINT [ns]      Start, relative to the run's first event.
--   dur               BIGINT [ns]      Recorded duration.
--   pid               BIGINT           Process id.
--   tid               BIGINT           Thread id.
--   parent_id         BIGINT           event_id of the innermost enclosing event.
--   depth             INTEGER [count]  Number of enclosing events.
--   step              BIGINT           Profiler step in which the event started; NULL outside steps.
--   in_last_step      BOOLEAN          Whether it starts in or after the rank's last step; excluded by default.
--   correlation       BIGINT           Correlation id; for runtime calls only.
--   external_id       BIGINT           External id; not for Python calls.
--   input_dims        VARCHAR          Input shapes as JSON; for operators only, as in the following columns up to group_size.
--   input_types       VARCHAR          Input types as JSON.
--   input_strides     VARCHAR          Input strides as JSON.
--   collective        VARCHAR          Kind of collective.
--   in_elems          BIGINT [count]   Number of elements sent.
--   out_elems         BIGINT [count]   Number of elements received.
--   elem_type         VARCHAR          Element type.
--   group_size        BIGINT [count]   Number of ranks in the process group.
--   python_id         BIGINT           Python id of the frame; for Python calls only.
--   python_parent_id  BIGINT           Python id of the calling frame; for Python calls only.
WITH
    _events AS NOT MATERIALIZED (
        SELECT
            c.run, c.rank, c.event_id, 'cpu_ops' AS table_name, 'cpu_op' AS category, c.name, c.ts, c.dur, c.pid, c.tid,
            c.parent_id, c.depth, c.step, c.in_last_step, NULL::BIGINT AS correlation, c.external_id,
            c.input_dims, c.input_types, c.input_strides, c.collective, c.in_elems, c.out_elems, c.elem_type, c.group_size,
            NULL::BIGINT AS python_id, NULL::BIGINT AS python_parent_id
        FROM cpu_ops AS c
        UNION ALL BY NAME
        SELECT
            r.run, r.rank, r.event_id, 'runtime_calls' AS table_name, r.category, r.name, r.ts, r.dur, r.pid, r.tid,
            r.parent_id, r.depth, r.step, r.in_last_step, r.correlation, r.external_id
        FROM runtime_calls AS r
        UNION ALL BY NAME
        SELECT
            a.run, a.rank, a.event_id, 'annotations' AS table_name, 'user_annotation' AS category, a.name, a.ts, a.dur, a.pid, a.tid,
            a.parent_id, a.depth, a.step, a.in_last_step, a.external_id
        FROM annotations AS a
        WHERE NOT a.on_gpu
        UNION ALL BY NAME
        SELECT
            p.run, p.rank, p.event_id, 'python_calls' AS table_name, 'python_function' AS category, p.name, p.ts, p.dur, p.pid, p.tid,
            p.parent_id, p.depth, p.step, p.in_last_step, p.python_id, p.python_parent_id
        FROM python_calls AS p
    )
SELECT e.*
FROM _events AS e
WHERE lib.is_requested(runs, e.run) AND lib.is_requested(ranks, e.rank)
