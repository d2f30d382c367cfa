-- Named ranges on host threads for the requested runs, ranks and steps: operators, annotations, runtime calls, Python
-- calls.
--
-- Device copies of annotations are excluded because they are not separate events. Memory events, counters, the
-- profiler's own overhead and events with a negative duration are also excluded.
CREATE OR REPLACE MACRO lib.scoped_host_events(
    runs,
    ranks,
    steps,
    include_last_profiler_step
) AS TABLE
-- Columns:
--   run         VARCHAR      Run name.
--   rank        INTEGER      Rank of the process.
--   event_id    BIGINT       Position of the event in traceEvents.
--   category    VARCHAR      cpu_op, user_annotation, python_function, or the trace's category of a runtime call.
--   name        VARCHAR      Name of the event.
--   input_dims  VARCHAR      Input shapes as JSON; for operators only.
--   pid         BIGINT       Process id.
--   tid         BIGINT       Thread id.
--   ts          BIGINT [ns]  Start, relative to the run's first event.
--   dur         BIGINT [ns]  Duration.
--   step        BIGINT       Profiler step in which the event started; NULL outside steps.
SELECT h.run, h.rank, h.event_id, h.category, h.name, h.input_dims, h.pid, h.tid, h.ts, h.dur, h.step
FROM lib.host_events(runs, ranks) AS h
WHERE
    h.dur >= 0
    AND lib.is_requested(steps, h.step)
    AND (include_last_profiler_step OR NOT h.in_last_step)
