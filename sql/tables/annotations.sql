-- User annotations: record_function ranges on the host and their copies on the device.
CREATE OR REPLACE VIEW annotations AS
-- Columns:
--   run                   VARCHAR          Run: one capture of one job.
--   rank                  INTEGER          Rank of the process.
--   event_id              BIGINT           Position of the event in traceEvents.
--   ts                    BIGINT [ns]      Start since the run's first event.
--   dur                   BIGINT [ns]      Duration as recorded.
--   pid                   BIGINT           Process id; on the device: the device.
--   tid                   BIGINT           Thread id; on the device: the stream.
--   name                  VARCHAR          Name of the range.
--   on_gpu                BOOLEAN          A device-side copy: it spans what the range launched.
--   parent_id             BIGINT           event_id of the latest started event of the thread that encloses this one.
--   depth                 INTEGER [count]  Number of events that enclose this one.
--   overlaps              BOOLEAN          Starts inside an event of the thread that started after its parent, and ends after it.
--   parent_annotation_id  BIGINT           event_id of the nearest annotation around it.
--   step                  BIGINT           Profiler step (N of ProfilerStep#N) in which it started; NULL outside of steps.
--   in_last_step          BOOLEAN          From the start of the rank's last step on, in a run of two or more steps: left out by default.
--   external_id           BIGINT           External id: joins host operators and device activity.
--   record_function_id    BIGINT           Record function id.
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
    x.on_gpu,
    x.parent_id,
    x.depth,
    x.overlaps,
    x.parent_annotation_id,
    x.step,
    x.in_tail AND r.drops_last_step AS in_last_step,
    x.external_id,
    x.record_function_id,
    x.profiler_event_index
FROM stored.annotations AS x
JOIN stored.rank_scope AS r ON r.run = x.run AND r.rank = x.rank
