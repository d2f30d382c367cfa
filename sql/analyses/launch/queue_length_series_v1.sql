-- Launch queue length of each device stream over time: one row per change.
--
-- Every launch call, regardless of name and vendor, adds its operations to the queue when the call starts; a graph
-- launch adds all operations of the graph. An operation leaves the queue when it starts on the device. Changes in the
-- same nanosecond form one row, or none if they cancel out. An operation that appears to start before its launch
-- because of clock error is treated as never queued. Operations without a launch in the trace are not counted.
--
-- Title: Launch queue length over time
-- Shown: rank, stream, ts, dur, queue_length
-- Status: stable
-- Since: 0.1
-- Reference: HTA get_queue_length_time_series
-- Needs: GPU activity and runtime calls
-- Report: chart; at most 8 ranks
-- Chart:
--   mark = "line"
--   title = "Queue length of each stream"
--   bar = ["rank", "device", "stream"]
--   value = "queue_length"
--   measure = "Operations waiting"
CREATE OR REPLACE MACRO queue_length_series_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false
) AS TABLE
-- Columns:
--   run           VARCHAR      Run name.
--   rank          INTEGER      Rank of the process.
--   device        BIGINT       Device number.
--   stream        BIGINT       Device stream.
--   ts            BIGINT [ns]  Time of the change, relative to the run's first event.
--   dur           BIGINT [ns]  Time to the next change on the stream; NULL after the last change of a recording.
--   queue_length  BIGINT [1]   Operations waiting after the change.
--   event_id      BIGINT       event_id of the launch that lengthened the queue, or of the operation whose start shortened it.
SELECT q.run, q.rank, q.device, q.stream, q.ts, q.dur, q.queue_length, q.event_id
FROM lib.queue_length(runs, ranks, steps, include_last_profiler_step) AS q
ORDER BY q.run, q.rank, q.device, q.stream, q.ts
