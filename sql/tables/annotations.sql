-- User annotations: record_function ranges on the host and their copies on the device.
CREATE OR REPLACE VIEW annotations AS
-- Columns:
--   run                   VARCHAR          Run: one capture of one job.
--   rank                  INTEGER          Rank of the process.
--   event_id              BIGINT           Position of the event in traceEvents; of later spans behind rank_spans.first_event_id.
--   span                  INTEGER          Recording of the rank (see rank_spans); 0 if the rank has only one recording.
--   ts                    BIGINT [ns]      Start since the run's first event.
--   dur                   BIGINT [ns]      Recorded duration.
--   pid                   BIGINT           Process id; on the device: the device.
--   tid                   BIGINT           Thread id; on the device: the stream.
--   name                  VARCHAR          Name of the range.
--   on_gpu                BOOLEAN          A device-side copy: it spans what the range launched.
--   parent_id             BIGINT           event_id of the innermost enclosing event on the thread.
--   depth                 INTEGER [count]  Number of enclosing events.
--   overlaps              BOOLEAN          Starts inside an event of the thread that started after its parent, and ends after it.
--   parent_annotation_id  BIGINT           event_id of the nearest annotation around it.
--   op_id                 BIGINT           event_id of the innermost enclosing operator.
--   module_id             BIGINT           event_id of the innermost enclosing nn.Module call.
--   frame_id              BIGINT           event_id of the innermost enclosing Python frame or nn.Module call.
--   stack_id              BIGINT           The names around it and its own, as a row of stacks; event_id of the first event that has them.
--   step                  BIGINT           Profiler step (N of ProfilerStep#N) in which the event started; NULL outside steps.
--   in_last_step          BOOLEAN          Whether it starts in or after the rank's last step, in a run of two or more steps; excluded by default.
--   is_truncated          BOOLEAN          It had not ended when the recording did: its end is that of the record window. NULL where the trace does not say when that was.
--   is_async              BOOLEAN          It may end on another thread than it began, so that it is time of no thread; NULL: not known. Known of gloo's.
--   external_id           BIGINT           External id: joins host operators and device activity.
--   record_function_id    BIGINT           Record function id.
--   profiler_event_index  BIGINT           Order of the event inside the profiler (Ev Idx).
--   input_dims            VARCHAR          Input shapes as JSON (record_shapes=True).
--   input_types           VARCHAR          Input types as JSON.
--   input_strides         VARCHAR          Input strides as JSON.
--   concrete_inputs       VARCHAR          Scalar inputs as JSON.
--   call_stack            VARCHAR          Python call stack as recorded on the annotation (verbose with_stack).
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
    x.on_gpu,
    x.parent_id,
    x.depth,
    x.overlaps,
    x.parent_annotation_id,
    x.op_id,
    x.module_id,
    x.frame_id,
    x.stack_id,
    x.step,
    x.in_tail AND r.drops_last_step AS in_last_step,
    x.is_truncated,
    CASE WHEN starts_with(x.name, 'gloo:') THEN true END AS is_async,
    x.external_id,
    x.record_function_id,
    x.profiler_event_index,
    x.input_dims,
    x.input_types,
    x.input_strides,
    x.concrete_inputs,
    x.call_stack
FROM stored.annotations AS x
JOIN stored.rank_scope AS r ON r.run = x.run AND r.rank = x.rank AND r.span = x.span
