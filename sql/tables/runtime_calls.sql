-- Calls of the device runtime and driver API on the host, whatever the vendor calls them.
CREATE OR REPLACE VIEW runtime_calls AS
-- Columns:
--   run            VARCHAR          Run: one capture of one job.
--   rank           INTEGER          Rank of the process.
--   event_id       BIGINT           Position of the event in traceEvents; of later spans behind rank_spans.first_event_id.
--   span           INTEGER          Recording of the rank (see rank_spans); 0 if the rank has only one recording.
--   ts             BIGINT [ns]      Start since the run's first event.
--   dur            BIGINT [ns]      Recorded duration.
--   pid            BIGINT           Process id; NULL if the trace has text instead of a number (see event_args).
--   tid            BIGINT           Thread id; NULL if the trace has text instead of a number (see event_args).
--   name           VARCHAR          Function called.
--   category       VARCHAR          Category in the trace: cuda_runtime, cuda_driver, ...
--   correlation    BIGINT           Correlation id: joins a call and what it launched.
--   parent_id      BIGINT           event_id of the innermost enclosing event on the thread.
--   depth          INTEGER [count]  Number of enclosing events.
--   overlaps       BOOLEAN          Starts inside an event of the thread that started after its parent, and ends after it.
--   op_id          BIGINT           event_id of the innermost enclosing operator.
--   annotation_id  BIGINT           event_id of the innermost enclosing user annotation other than a step.
--   module_id      BIGINT           event_id of the innermost enclosing nn.Module call.
--   frame_id       BIGINT           event_id of the innermost enclosing Python frame or nn.Module call.
--   stack_id       BIGINT           The names around it and its own, as a row of stacks; event_id of the first event that has them.
--   step           BIGINT           Profiler step (N of ProfilerStep#N) in which the event started; NULL outside steps.
--   in_last_step   BOOLEAN          Whether it starts in or after the rank's last step, in a run of two or more steps; excluded by default.
--   is_truncated   BOOLEAN          It had not ended when the recording did: its end is that of the record window. NULL where the trace does not say when that was.
--   external_id    BIGINT           External id: joins host operators and device activity.
--   cbid           BIGINT           CUPTI callback id.
SELECT
    x.run,
    x.rank,
    x.event_id,
    x.span,
    x.ts + r.offset_ns AS ts,
    x.dur,
    x.pid,
    x.tid,
    x.name,
    x.category,
    x.correlation,
    x.parent_id,
    x.depth,
    x.overlaps,
    x.op_id,
    x.annotation_id,
    x.module_id,
    x.frame_id,
    x.stack_id,
    x.step,
    x.in_tail AND r.drops_last_step AS in_last_step,
    x.is_truncated,
    x.external_id,
    x.cbid
FROM stored.runtime_calls AS x
JOIN stored.rank_scope AS r ON r.run = x.run AND r.rank = x.rank AND r.span = x.span
