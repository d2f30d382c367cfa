-- Host operators: aten, autograd and custom operators, and others that record_function marks as operators.
CREATE OR REPLACE VIEW cpu_ops AS
-- Columns:
--   run                   VARCHAR          Run name: one capture of one job.
--   rank                  INTEGER          Rank of the process.
--   event_id              BIGINT           Position of the event in traceEvents, plus rank_spans.first_event_id in later recordings of the rank.
--   ts                    BIGINT [ns]      Start, relative to the run's first event.
--   dur                   BIGINT [ns]      Recorded duration.
--   pid                   BIGINT           Process id; NULL if the trace has a string instead of a number (see event_args).
--   tid                   BIGINT           Thread id; NULL if the trace has a string instead of a number (see event_args).
--   name                  VARCHAR          Operator name.
--   parent_id             BIGINT           event_id of the innermost enclosing event on the thread.
--   depth                 INTEGER [count]  Number of enclosing events.
--   overlaps              BOOLEAN          Whether the event starts inside an event that is not its parent, and ends after that event.
--   parent_op_id          BIGINT           event_id of the innermost enclosing operator.
--   annotation_id         BIGINT           event_id of the innermost enclosing user annotation other than a step.
--   module_id             BIGINT           event_id of the innermost enclosing nn.Module call.
--   frame_id              BIGINT           event_id of the innermost enclosing Python frame or nn.Module call.
--   fwd_op_id             BIGINT           event_id of the forward operator that this backward operator belongs to.
--   bwd_op_id             BIGINT           event_id of the innermost enclosing operator of autograd's backward pass, which may be the operator itself.
--   stack_id              BIGINT           stack_id in stacks: event_id of the first event with the same chain of names, from the outermost enclosing event to the event itself.
--   step                  BIGINT           Profiler step (N of ProfilerStep#N) in which the event started; NULL outside steps.
--   is_truncated          BOOLEAN          Whether the event was still running when the recording ended, so its end is the end of the recording; NULL if the trace does not state when the recording ended.
--   external_id           BIGINT           External id, which links host operators and device activity.
--   record_function_id    BIGINT           Record function id.
--   profiler_event_index  BIGINT           Index of the event in the profiler (Ev Idx).
--   sequence_number       BIGINT           Autograd sequence number; -1: none.
--   fwd_thread_id         BIGINT           Autograd's number of the forward thread; 0: none.
--   input_dims            VARCHAR          Input shapes as JSON (record_shapes=True).
--   input_types           VARCHAR          Input types as JSON.
--   input_strides         VARCHAR          Input strides as JSON.
--   concrete_inputs       VARCHAR          Scalar inputs as JSON.
--   call_stack            VARCHAR          Recorded Python call stack of the operator (verbose with_stack).
--   module_hierarchy      VARCHAR          Recorded module hierarchy (with_modules).
--   collective            VARCHAR          Recorded kind of collective.
--   in_elems              BIGINT [count]   Number of elements sent.
--   out_elems             BIGINT [count]   Number of elements received.
--   group_size            BIGINT [count]   Number of ranks in the process group.
--   elem_type             VARCHAR          Element type.
--   pg_name               VARCHAR          Process group name.
--   pg_desc               VARCHAR          Process group description.
--   pg_ranks              VARCHAR          Global ranks of the process group as JSON.
--   seq                   BIGINT           Sequence number of the collective in its process group.
--   kernel_file           VARCHAR          Generated source file of the kernel, such as torchinductor_me/qa/cqa….py.
--   num_warps             BIGINT [count]   Warps per block of the kernel, as chosen by Triton's autotuning.
--   num_stages            BIGINT [count]   Stages of the kernel's software pipeline, as chosen by Triton's autotuning.
--   kernel_backend        VARCHAR          Compiler of the kernel that the operator launches, such as triton; NULL for other operators.
--   kernel_hash           VARCHAR          Hash of kernel_file, which is also the file's name in Inductor's cache.
--   span                  INTEGER          Recording of the rank (see rank_spans); 0 if the rank has only one recording.
--   overload_name         VARCHAR          Overload, such as Tensor in aten::add.Tensor; NULL if the name has none.
--   in_last_step          BOOLEAN          Whether the event starts in or after the rank's last step of a run with two or more steps; excluded by default.
SELECT
    x.* EXCLUDE (in_tail) REPLACE (x.ts + r.offset_ns AS ts),
    CASE WHEN contains(x.name, '.') THEN nullif(regexp_extract(x.name, '^\w+::\w+\.(\w+)$', 1), '') END AS overload_name,
    x.in_tail AND r.drops_last_step AS in_last_step
FROM stored.cpu_ops AS x
JOIN stored.rank_scope AS r ON r.run = x.run AND r.rank = x.rank AND r.span = x.span
