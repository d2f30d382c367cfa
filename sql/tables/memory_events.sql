-- Allocations and frees of the caching allocators (profile_memory=True).
CREATE OR REPLACE VIEW memory_events AS
-- Columns:
--   run                    VARCHAR         Run name: one capture of one job.
--   rank                   INTEGER         Rank of the process.
--   event_id               BIGINT          Position of the event in traceEvents, plus rank_spans.first_event_id in later recordings of the rank.
--   ts                     BIGINT [ns]     Time since the run's first event.
--   pid                    BIGINT          Process id; NULL if the trace has a string instead of a number (see event_args).
--   tid                    BIGINT          Thread id; NULL if the trace has a string instead of a number (see event_args).
--   parent_id              BIGINT          event_id of the innermost enclosing event on the thread.
--   op_id                  BIGINT          event_id of the innermost enclosing operator.
--   annotation_id          BIGINT          event_id of the innermost enclosing user annotation other than a step.
--   module_id              BIGINT          event_id of the innermost enclosing nn.Module call.
--   frame_id               BIGINT          event_id of the innermost enclosing Python frame or nn.Module call.
--   stack_id               BIGINT          stack_id in stacks: the chain of names of the enclosing events.
--   step                   BIGINT          Profiler step (N of ProfilerStep#N) in which the event started; NULL outside steps.
--   profiler_event_index   BIGINT          Index of the event in the profiler (Ev Idx).
--   addr                   BIGINT          Memory address.
--   bytes                  BIGINT [bytes]  Allocated bytes if positive, freed bytes if negative.
--   total_allocated_bytes  BIGINT [bytes]  Total memory allocated on the device after this event.
--   total_reserved_bytes   BIGINT [bytes]  Total memory reserved on the device after this event.
--   device_type            INTEGER         Device type as torch numbers it: 0 CPU, 1 CUDA or ROCm.
--   device                 BIGINT          Device number; -1: CPU.
--   span                   INTEGER         Recording of the rank (see rank_spans); 0 if the rank has only one recording.
--   in_last_step           BOOLEAN         Whether the event starts in or after the rank's last step of a run with two or more steps; excluded by default.
SELECT
    x.* EXCLUDE (in_tail) REPLACE (x.ts + r.offset_ns AS ts),
    x.in_tail AND r.drops_last_step AS in_last_step
FROM stored.memory_events AS x
JOIN stored.rank_scope AS r ON r.run = x.run AND r.rank = x.rank AND r.span = x.span
