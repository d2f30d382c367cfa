-- Python frames and nn.Module calls (with_stack=True).
CREATE OR REPLACE VIEW python_calls AS
-- Columns:
--   run                   VARCHAR          Run: one capture of one job.
--   rank                  INTEGER          Rank of the process.
--   event_id              BIGINT           Position of the event in traceEvents.
--   ts                    BIGINT [ns]      Start since the run's first event.
--   dur                   BIGINT [ns]      Duration as recorded.
--   pid                   BIGINT           Process id; NULL where the trace has text (see event_args).
--   tid                   BIGINT           Thread id; NULL where the trace has text (see event_args).
--   name                  VARCHAR          file(line): function, or nn.Module: Name_0.
--   parent_id             BIGINT           event_id of the latest started event of the thread that encloses this one.
--   depth                 INTEGER [count]  Number of events that enclose this one.
--   overlaps              BOOLEAN          Starts inside an event of the thread that started after its parent, and ends after it.
--   parent_module_id      BIGINT           event_id of the nearest nn.Module call around it.
--   step                  BIGINT           Profiler step (N of ProfilerStep#N) in which it started; NULL outside of steps.
--   in_last_step          BOOLEAN          From the start of the rank's last step on, in a run of two or more steps: left out by default.
--   python_id             BIGINT           Python id.
--   python_parent_id      BIGINT           Python parent id, as recorded.
--   python_module_id      BIGINT           Number of the module instance.
--   profiler_event_index  BIGINT           Order of the event inside the profiler (Ev Idx).
SELECT
    x.run,
    x.rank,
    x.event_id,
    x.ts + r.offset_ns AS ts,
    x.dur,
    x.pid,
    x.tid,
    x.name,
    x.parent_id,
    x.depth,
    x.overlaps,
    x.parent_module_id,
    x.step,
    x.in_tail AND r.drops_last_step AS in_last_step,
    x.python_id,
    x.python_parent_id,
    x.python_module_id,
    x.profiler_event_index
FROM stored.python_calls AS x
JOIN stored.rank_scope AS r ON r.run = x.run AND r.rank = x.rank
