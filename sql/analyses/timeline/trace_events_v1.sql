-- Every host and device event with a duration, in one table with the columns that most tools need.
--
-- Categories are the current Kineto names: cpu_op, user_annotation, gpu_user_annotation, python_function, kernel,
-- gpu_memcpy, gpu_memset, cuda_sync. Runtime and driver calls, and events in other_events, keep the category recorded
-- in the trace. The profiler's own span and events without a category are excluded. A runtime call is linked to the
-- first operation with its correlation id, and a device operation to the call that launched it.
--
-- Title: Every event
-- Shown: rank, ts, dur, category, name, step, stream, event_id
-- Status: stable
-- Since: 0.1
-- Reference: HTA Trace.get_trace
-- Needs: events
CREATE OR REPLACE MACRO trace_events_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false
) AS TABLE
-- Columns:
--   run                         VARCHAR         Run name.
--   rank                        INTEGER         Rank of the process.
--   event_id                    BIGINT          Position of the event in traceEvents.
--   table_name                  VARCHAR         Table with the event's other columns.
--   category                    VARCHAR         Kineto category of the event.
--   name                        VARCHAR         Name of the event.
--   pid                         BIGINT          Process id, or device; NULL if the trace has a string instead of a number.
--   tid                         BIGINT          Thread id, or stream; NULL if the trace has a string instead of a number.
--   ts                          BIGINT [ns]     Start, relative to the run's first event.
--   dur                         BIGINT [ns]     Duration.
--   step                        BIGINT          Profiler step; NULL outside steps.
--   device                      BIGINT          Device number; NULL on the host.
--   stream                      BIGINT          Device stream; NULL on the host.
--   correlation                 BIGINT          Correlation id.
--   linked_event_id             BIGINT          event_id of the event at the other end of the correlation; NULL if not in the trace.
--   external_id                 BIGINT          External id.
--   bytes                       BIGINT [bytes]  Bytes copied or set.
--   bandwidth_gbps              DOUBLE [GB/s]   Recorded bandwidth.
--   wait_on_stream              BIGINT          Stream that a synchronization waits for.
--   wait_on_record_correlation  BIGINT          Correlation id of the event record that a synchronization waits for.
--   input_dims                  VARCHAR         Input shapes as JSON.
--   input_types                 VARCHAR         Input types as JSON.
--   input_strides               VARCHAR         Input strides as JSON.
--   python_id                   BIGINT          Python id of the frame.
--   python_parent_id            BIGINT          Python id of the parent frame.
--   collective                  VARCHAR         Collective operation.
--   in_elems_count              BIGINT [count]  Number of elements sent.
--   out_elems_count             BIGINT [count]  Number of elements received.
--   elem_type                   VARCHAR         Element type.
--   group_size_count            BIGINT [count]  Number of ranks in the process group.
--   in_split_sizes              VARCHAR         Split sizes of the input as JSON.
--   out_split_sizes             VARCHAR         Split sizes of the output as JSON.
WITH
    linked AS (
        SELECT g.run, g.rank, g.span, g.correlation, arg_min(g.event_id, (g.ts, g.event_id)) AS event_id
        FROM gpu_ops AS g
        WHERE lib.is_requested(runs, g.run) AND lib.is_requested(ranks, g.rank)
        GROUP BY g.run, g.rank, g.span, g.correlation
    ),
    last_steps AS (
        SELECT s.run, s.rank, s.span, min(s.ts) AS ts
        FROM steps AS s
        JOIN rank_spans AS r ON r.run = s.run AND r.rank = s.rank AND r.span = s.span
        WHERE s.is_last AND r.drops_last_step
        GROUP BY s.run, s.rank, s.span
    ),
    ranges AS (
        SELECT
            a.run, a.rank, a.event_id, 'annotations' AS table_name,
            CASE WHEN a.on_gpu THEN 'gpu_user_annotation' ELSE 'user_annotation' END AS category,
            a.name, a.pid, a.tid, a.ts, a.dur, a.step, a.in_last_step, a.external_id,
            a.input_dims, a.input_types, a.input_strides
        FROM annotations AS a
    ),
    unknown_events AS (
        SELECT
            o.run, o.rank, o.event_id, 'other_events' AS table_name, o.category, o.name,
            TRY_CAST(o.pid AS BIGINT) AS pid, TRY_CAST(o.tid AS BIGINT) AS tid, o.ts, o.dur, o.ts >= l.ts IS TRUE AS in_last_step
        FROM other_events AS o
        LEFT JOIN last_steps AS l ON l.run = o.run AND l.rank = o.rank AND l.span = o.span
        WHERE o.phase = 'X' AND o.category <> 'Trace'
    ),
    host AS (
        SELECT h.* FROM lib.host_events(runs, ranks) AS h WHERE h.table_name <> 'annotations'
        UNION ALL BY NAME
        FROM ranges
        UNION ALL BY NAME
        FROM unknown_events
    ),
    everything AS (
        SELECT h.*, l.event_id AS linked_event_id
        FROM host AS h
        LEFT JOIN linked AS l ON l.run = h.run AND l.rank = h.rank AND l.span = lib.span_of(h.event_id) AND l.correlation = h.correlation
        WHERE lib.is_requested(runs, h.run) AND lib.is_requested(ranks, h.rank)
        UNION ALL BY NAME
        SELECT g.*, 'gpu_ops' AS table_name, g.device AS pid, g.stream AS tid, g.launch_id AS linked_event_id
        FROM gpu_ops AS g
        WHERE lib.is_requested(runs, g.run) AND lib.is_requested(ranks, g.rank)
    )
SELECT
    e.run,
    e.rank,
    e.event_id,
    e.table_name,
    e.category,
    e.name,
    e.pid,
    e.tid,
    e.ts,
    e.dur,
    e.step,
    e.device,
    e.stream,
    e.correlation,
    e.linked_event_id,
    e.external_id,
    e.bytes,
    e.bandwidth_gbps,
    e.wait_on_stream,
    e.wait_on_record_correlation,
    e.input_dims,
    e.input_types,
    e.input_strides,
    e.python_id,
    e.python_parent_id,
    e.collective,
    e.in_elems AS in_elems_count,
    e.out_elems AS out_elems_count,
    e.elem_type,
    e.group_size AS group_size_count,
    e.in_split_sizes,
    e.out_split_sizes
FROM everything AS e
WHERE (include_last_profiler_step OR NOT e.in_last_step) AND lib.is_requested(steps, e.step)
ORDER BY e.run, e.rank, e.event_id
