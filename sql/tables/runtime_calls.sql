-- Host calls to the runtime and driver APIs of any device vendor.
CREATE OR REPLACE VIEW runtime_calls AS
-- Columns:
--   run            VARCHAR          Run name: one capture of one job.
--   rank           INTEGER          Rank of the process.
--   event_id       BIGINT           Position of the event in traceEvents, plus rank_spans.first_event_id in later recordings of the rank.
--   ts             BIGINT [ns]      Start, relative to the run's first event.
--   dur            BIGINT [ns]      Recorded duration.
--   pid            BIGINT           Process id; NULL if the trace has a string instead of a number (see event_args).
--   tid            BIGINT           Thread id; NULL if the trace has a string instead of a number (see event_args).
--   name           VARCHAR          Name of the called function.
--   category       VARCHAR          Category in the trace, such as cuda_runtime or cuda_driver.
--   parent_id      BIGINT           event_id of the innermost enclosing event on the thread.
--   depth          INTEGER [count]  Number of enclosing events.
--   overlaps       BOOLEAN          Whether the event starts inside an event that is not its parent, and ends after that event.
--   op_id          BIGINT           event_id of the innermost enclosing operator.
--   annotation_id  BIGINT           event_id of the innermost enclosing user annotation other than a step.
--   module_id      BIGINT           event_id of the innermost enclosing nn.Module call.
--   frame_id       BIGINT           event_id of the innermost enclosing Python frame or nn.Module call.
--   stack_id       BIGINT           stack_id in stacks: event_id of the first event with the same chain of names, from the outermost enclosing event to the event itself.
--   step           BIGINT           Profiler step (N of ProfilerStep#N) in which the event started; NULL outside steps.
--   is_truncated   BOOLEAN          Whether the event was still running when the recording ended, so its end is the end of the recording; NULL if the trace does not state when the recording ended.
--   external_id    BIGINT           External id, which links host operators and device activity.
--   correlation    BIGINT           Correlation id, which links a call to the operations that it launched.
--   cbid           BIGINT           CUPTI callback id.
--   span           INTEGER          Recording of the rank (see rank_spans); 0 if the rank has only one recording.
--   in_last_step   BOOLEAN          Whether the event starts in or after the rank's last step of a run with two or more steps; excluded by default.
SELECT
    x.* EXCLUDE (in_tail) REPLACE (x.ts + r.offset_ns AS ts),
    x.in_tail AND r.drops_last_step AS in_last_step
FROM stored.runtime_calls AS x
JOIN stored.rank_scope AS r ON r.run = x.run AND r.rank = x.rank AND r.span = x.span
