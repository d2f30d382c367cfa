-- Every event that lasts, host and device, in one table with the columns that most tools ask for.
--
-- Categories are today's names of Kineto: cpu_op, user_annotation, gpu_user_annotation,
-- python_function, kernel, gpu_memcpy, gpu_memset, cuda_sync; runtime and driver calls and what no
-- table knows keep the category that the trace has. The profiler's own span is left out, and so is
-- what has no category. A runtime
-- call is linked to the first operation that its correlation id launched, a device operation to the
-- call that launched it.
--
-- Status: stable
-- Since: 0.1
-- Reference: HTA Trace.get_trace
-- Needs: events
CREATE OR REPLACE MACRO trace_events_v1(
    -- Runs to include; NULL means every run.
    runs VARCHAR[] := NULL,
    -- Ranks to include; NULL means every rank.
    ranks INTEGER[] := NULL,
    -- Profiler steps to include; NULL means every step and what lies outside of steps.
    steps BIGINT[] := NULL,
    -- Whether to include the last profiler step of a run with two or more.
    include_last_profiler_step BOOLEAN := false
) AS TABLE
-- Columns:
--   run                         VARCHAR         Run name.
--   rank                        INTEGER         Rank of the process.
--   event_id                    BIGINT          Position of the event in traceEvents.
--   table_name                  VARCHAR         Table with the rest of it.
--   category                    VARCHAR         Category.
--   name                        VARCHAR         Name.
--   pid                         BIGINT          Process id, or device; NULL where the trace has text.
--   tid                         BIGINT          Thread id, or stream; NULL where the trace has text.
--   ts                          BIGINT [ns]     Start since the run's first event.
--   dur                         BIGINT [ns]     Duration.
--   step                        BIGINT          Profiler step; NULL outside of steps.
--   device                      BIGINT          Device number; NULL on the host.
--   stream                      BIGINT          Device stream; NULL on the host.
--   correlation                 BIGINT          Correlation id.
--   linked_event_id             BIGINT          event_id at the other end of the correlation; NULL if not in the trace.
--   external_id                 BIGINT          External id.
--   bytes                       BIGINT [bytes]  Bytes copied or set.
--   bandwidth_gbps              DOUBLE [GB/s]   Bandwidth as recorded.
--   wait_on_stream              BIGINT          Stream that a synchronisation waits for.
--   wait_on_record_correlation  BIGINT          Correlation id of the event record that a synchronisation waits for.
--   input_dims                  VARCHAR         Input shapes as JSON.
--   input_types                 VARCHAR         Input types as JSON.
--   input_strides               VARCHAR         Input strides as JSON.
--   python_id                   BIGINT          Python id.
--   python_parent_id            BIGINT          Python parent id.
--   collective                  VARCHAR         Collective operation.
--   in_elems_count              BIGINT [count]  Elements sent.
--   out_elems_count             BIGINT [count]  Elements received.
--   elem_type                   VARCHAR         Type of the elements.
--   group_size_count            BIGINT [count]  Ranks in the process group.
--   in_split_sizes              VARCHAR         Split sizes of the input as JSON.
--   out_split_sizes             VARCHAR         Split sizes of the output as JSON.
WITH
    linked AS (
        SELECT g.run, g.rank, g.correlation, min(g.event_id) AS event_id
        FROM gpu_ops AS g
        WHERE lib.wanted(runs, g.run) AND lib.wanted(ranks, g.rank)
        GROUP BY g.run, g.rank, g.correlation
    ),
    last_steps AS (
        SELECT s.run, s.rank, min(s.ts) AS ts
        FROM steps AS s
        JOIN ranks AS r ON r.run = s.run AND r.rank = s.rank
        WHERE s.is_last AND r.drops_last_step
        GROUP BY s.run, s.rank
    ),
    host AS (
        SELECT
            c.run, c.rank, c.event_id, 'cpu_ops' AS table_name, 'cpu_op' AS category, c.name, c.pid, c.tid, c.ts, c.dur, c.step, c.in_last_step,
            NULL::BIGINT AS correlation, c.external_id, c.input_dims, c.input_types, c.input_strides,
            NULL::BIGINT AS python_id, NULL::BIGINT AS python_parent_id,
            c.collective, c.in_elems, c.out_elems, c.elem_type, c.group_size
        FROM cpu_ops AS c
        UNION ALL
        SELECT
            a.run, a.rank, a.event_id, 'annotations', CASE WHEN a.on_gpu THEN 'gpu_user_annotation' ELSE 'user_annotation' END,
            a.name, a.pid, a.tid, a.ts, a.dur, a.step, a.in_last_step,
            NULL, a.external_id, (x.args -> '$."Input Dims"')::VARCHAR, (x.args -> '$."Input type"')::VARCHAR, (x.args -> '$."Input Strides"')::VARCHAR,
            NULL, NULL, NULL, NULL, NULL, NULL, NULL
        FROM annotations AS a
        LEFT JOIN event_args AS x ON x.run = a.run AND x.rank = a.rank AND x.event_id = a.event_id
        UNION ALL
        SELECT
            c.run, c.rank, c.event_id, 'runtime_calls', c.category, c.name, c.pid, c.tid, c.ts, c.dur, c.step, c.in_last_step,
            c.correlation, c.external_id, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
        FROM runtime_calls AS c
        UNION ALL
        SELECT
            p.run, p.rank, p.event_id, 'python_calls', 'python_function', p.name, p.pid, p.tid, p.ts, p.dur, p.step, p.in_last_step,
            NULL, NULL, NULL, NULL, NULL, p.python_id, p.python_parent_id, NULL, NULL, NULL, NULL, NULL
        FROM python_calls AS p
        UNION ALL
        SELECT
            o.run, o.rank, o.event_id, 'other_events', o.category, o.name, TRY_CAST(o.pid AS BIGINT), TRY_CAST(o.tid AS BIGINT), o.ts, o.dur, NULL, o.ts >= l.ts IS TRUE,
            NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
        FROM other_events AS o
        LEFT JOIN last_steps AS l ON l.run = o.run AND l.rank = o.rank
        WHERE o.phase = 'X' AND o.category <> 'Trace'
    ),
    everything AS (
        SELECT
            h.* EXCLUDE (in_elems, out_elems, elem_type, group_size),
            NULL::BIGINT AS device, NULL::BIGINT AS stream, l.event_id AS linked_event_id,
            NULL::BIGINT AS bytes, NULL::DOUBLE AS bandwidth_gbps, NULL::BIGINT AS wait_on_stream, NULL::BIGINT AS wait_on_record_correlation,
            h.in_elems, h.out_elems, h.elem_type, h.group_size, NULL::VARCHAR AS in_split_sizes, NULL::VARCHAR AS out_split_sizes
        FROM host AS h
        LEFT JOIN linked AS l ON l.run = h.run AND l.rank = h.rank AND l.correlation = h.correlation
        WHERE lib.wanted(runs, h.run) AND lib.wanted(ranks, h.rank)
        UNION ALL
        SELECT
            g.run, g.rank, g.event_id, 'gpu_ops',
            CASE g.kind WHEN 'memcpy' THEN 'gpu_memcpy' WHEN 'memset' THEN 'gpu_memset' WHEN 'sync' THEN 'cuda_sync' ELSE g.kind END,
            g.name, g.device, g.stream, g.ts, g.dur, g.step, g.in_last_step,
            g.correlation, g.external_id, NULL, NULL, NULL, NULL, NULL, g.collective,
            g.device, g.stream, g.launch_id, g.bytes, g.bandwidth_gbps, g.wait_on_stream, g.wait_on_record_correlation,
            g.in_elems, g.out_elems, g.elem_type, g.group_size, g.in_split_sizes, g.out_split_sizes
        FROM gpu_ops AS g
        WHERE lib.wanted(runs, g.run) AND lib.wanted(ranks, g.rank)
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
WHERE (include_last_profiler_step OR NOT e.in_last_step) AND lib.wanted(steps, e.step)
ORDER BY e.run, e.rank, e.event_id
