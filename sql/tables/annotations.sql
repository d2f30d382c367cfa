-- User annotations: record_function ranges on the host and their copies on the device.
CREATE OR REPLACE VIEW annotations AS
-- Columns:
--   run                   VARCHAR          Run name: one capture of one job.
--   rank                  INTEGER          Rank of the process.
--   event_id              BIGINT           Position of the event in traceEvents, plus rank_spans.first_event_id in later recordings of the rank.
--   ts                    BIGINT [ns]      Start, relative to the run's first event.
--   dur                   BIGINT [ns]      Recorded duration.
--   pid                   BIGINT           Process id, or device for a device-side copy.
--   tid                   BIGINT           Thread id, or stream for a device-side copy.
--   name                  VARCHAR          Name of the range.
--   on_gpu                BOOLEAN          Whether the row is the device-side copy of a range, which spans the operations that the range launched.
--   parent_id             BIGINT           event_id of the innermost enclosing event on the thread.
--   depth                 INTEGER [count]  Number of enclosing events.
--   overlaps              BOOLEAN          Whether the event starts inside an event that is not its parent, and ends after that event.
--   parent_annotation_id  BIGINT           event_id of the innermost enclosing annotation.
--   op_id                 BIGINT           event_id of the innermost enclosing operator.
--   module_id             BIGINT           event_id of the innermost enclosing nn.Module call.
--   frame_id              BIGINT           event_id of the innermost enclosing Python frame or nn.Module call.
--   stack_id              BIGINT           stack_id in stacks: event_id of the first event with the same chain of names, from the outermost enclosing event to the event itself.
--   step                  BIGINT           Profiler step (N of ProfilerStep#N) in which the event started; NULL outside steps.
--   is_truncated          BOOLEAN          Whether the event was still running when the recording ended, so its end is the end of the recording; NULL if the trace does not state when the recording ended.
--   external_id           BIGINT           External id, which links host operators and device activity.
--   record_function_id    BIGINT           Record function id.
--   profiler_event_index  BIGINT           Index of the event in the profiler (Ev Idx).
--   input_dims            VARCHAR          Input shapes as JSON (record_shapes=True).
--   input_types           VARCHAR          Input types as JSON.
--   input_strides         VARCHAR          Input strides as JSON.
--   concrete_inputs       VARCHAR          Scalar inputs as JSON.
--   call_stack            VARCHAR          Recorded Python call stack of the annotation (verbose with_stack).
--   span                  INTEGER          Recording of the rank (see rank_spans); 0 if the rank has only one recording.
--   in_last_step          BOOLEAN          Whether the event starts in or after the rank's last step of a run with two or more steps; excluded by default.
--   is_async              BOOLEAN          Whether the range may end on another thread, so that its time belongs to no thread; NULL if unknown. Known for gloo only.
SELECT
    x.* EXCLUDE (in_tail) REPLACE (x.ts + r.offset_ns AS ts),
    x.in_tail AND r.drops_last_step AS in_last_step,
    CASE WHEN starts_with(x.name, 'gloo:') THEN true END AS is_async
FROM stored.annotations AS x
JOIN stored.rank_scope AS r ON r.run = x.run AND r.rank = x.rank AND r.span = x.span
