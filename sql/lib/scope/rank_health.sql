-- Counts of the data that a rank's trace contains or does not contain, for the analyses findings and rank_health.
CREATE OR REPLACE MACRO lib.rank_health(
    runs,
    ranks
) AS TABLE
-- Columns:
--   run                              VARCHAR         Run name.
--   rank                             INTEGER         Rank of the process.
--   source                           VARCHAR         Path of the trace file.
--   rank_source                      VARCHAR         Source of the rank number.
--   world_size                       BIGINT [count]  Recorded number of ranks of the job.
--   backend                          VARCHAR         Recorded communication backend.
--   trace_id                         VARCHAR         Recorded id of the capture.
--   is_summary                       BOOLEAN         Whether the file contains only step times summarized by a different profiler, instead of a trace.
--   has_base_time                    BOOLEAN         Whether the trace has a base time, so that its clock is comparable with those of other ranks.
--   offset_ns                        BIGINT [ns]     Start of the rank, relative to the run's first event.
--   dur                              BIGINT [ns]     Time from the start of the first event until the last event ends.
--   event_count                      BIGINT [count]  Number of events in the file.
--   cpu_op_count                     BIGINT [count]  Number of host operators.
--   cpu_op_with_shapes_count         BIGINT [count]  Number of host operators with input shapes.
--   cpu_op_with_stack_count          BIGINT [count]  Number of host operators with a Python call stack.
--   python_call_count                BIGINT [count]  Number of Python frames.
--   memory_event_count               BIGINT [count]  Number of allocator events.
--   records_memory                   BOOLEAN         Whether the trace was recorded with profile_memory=True.
--   records_shapes                   BOOLEAN         Whether the trace was recorded with record_shapes=True.
--   records_stacks                   BOOLEAN         Whether the trace was recorded with with_stack=True.
--   gpu_op_count                     BIGINT [count]  Number of kernels, copies and memsets.
--   unlinked_gpu_op_count            BIGINT [count]  Number of these operations whose launch is not in the trace.
--   communication_count              BIGINT [count]  Number of communication operations.
--   communication_with_seq_count     BIGINT [count]  Communication operations with a sequence number.
--   communication_with_group_count   BIGINT [count]  Communication operations with a process group.
--   hccl_count                       BIGINT [count]  Communication operations of Ascend (HCCL).
--   suspected_communication_count    BIGINT [count]  Kernels launched by a communication call that no rule matches.
--   suspected_communication_example  VARCHAR         Name of the first of these kernels in alphabetical order.
--   gpu_ns                           BIGINT [ns]     Total duration of all device activity with a possible duration.
--   unmatched_ns                     BIGINT [ns]     Part of gpu_ns whose class was not determined by metadata, category or rule.
--   suspect_count                    BIGINT [count]  Device operations with an impossible duration.
--   suspect_ns                       BIGINT [ns]     Recorded duration of these operations.
--   device_skew_ns                   BIGINT [ns]     Lead of the device clock over the host clock (lib.device_clock_skew); of several devices, the value furthest from 0; NULL if unknown.
--   step_count                       BIGINT [count]  Number of profiler steps.
--   first_step_ns                    BIGINT [ns]     Duration of the first step.
--   median_step_ns                   BIGINT [ns]     Median step duration.
--   lost_count                       BIGINT [count]  Number of unreadable spans in the file.
--   lost_bytes                       BIGINT [bytes]  Size of these spans, an estimate if a compressed file is damaged; NULL if the file is cut off, so that it is unknown.
--   lost_event_count                 BIGINT [count]  Number of events that these spans would have at the density of the rest; NULL if unknown.
--   lost_pct                         DOUBLE [%]      lost_bytes as a share of the file; NULL if unknown.
--   is_truncated                     BOOLEAN         Whether the file is truncated.
--   repaired_count                   BIGINT [count]  Number of repaired events.
--   odd_argument_count               BIGINT [count]  Argument values that do not fit the type of their column.
--   first_odd_argument               VARCHAR         Problem with the first of these values.
--   first_loss                       VARCHAR         Problem with the first lost span.
--   first_loss_offset                BIGINT [bytes]  Offset of that span in the file.
--   first_repair                     VARCHAR         Problem with the first repaired event.
--   missing_columns                  VARCHAR         Columns missing from the rank's stored files because an older version wrote them.
--   definitions_changed              BOOLEAN         Whether the rank was ingested with older definitions.
WITH
    _ranks AS (
        SELECT k.*
        FROM ranks AS k
        WHERE lib.is_requested(runs, k.run) AND lib.is_requested(ranks, k.rank)
    ),
    _gpu AS (
        SELECT
            g.run,
            g.rank,
            count(*) FILTER (g.class <> 'sync') AS gpu_op_count,
            count(*) FILTER (g.class <> 'sync' AND g.launch_id IS NULL) AS unlinked_gpu_op_count,
            count(*) FILTER (g.class = 'communication') AS communication_count,
            count(*) FILTER (g.class = 'communication' AND g.seq IS NOT NULL) AS communication_with_seq_count,
            count(*) FILTER (g.class = 'communication' AND g.pg_name IS NOT NULL) AS communication_with_group_count,
            count(*) FILTER (g.class = 'communication' AND regexp_matches(g.name, '^(hcom_|hccl)', 'i')) AS hccl_count,
            count(*) FILTER (g.is_suspect) AS suspect_count,
            sum(g.dur) FILTER (g.is_suspect)::BIGINT AS suspect_ns,
            sum(g.dur) FILTER (g.class <> 'sync' AND NOT g.is_suspect)::BIGINT AS gpu_ns,
            sum(g.dur) FILTER (g.class_source = 'default' AND NOT g.is_suspect)::BIGINT AS unmatched_ns
        FROM gpu_ops AS g
        SEMI JOIN _ranks AS k ON k.run = g.run AND k.rank = g.rank
        GROUP BY ALL
    ),
    _skews AS (
        SELECT s.run, s.rank, arg_max(s.skew_ns, (abs(s.skew_ns), s.skew_ns)) AS device_skew_ns
        FROM lib.device_clock_skew(runs, ranks) AS s
        GROUP BY s.run, s.rank
    ),
    -- Kernels that no rule matches although a communication call of the framework launched them.
    _comm_calls AS (
        SELECT c.run, c.rank, c.event_id
        FROM cpu_ops AS c
        SEMI JOIN _ranks AS k ON k.run = c.run AND k.rank = c.rank
        WHERE c.name = 'record_param_comms' OR c.name LIKE 'nccl:%' OR c.name LIKE 'c10d::%'
        UNION ALL
        SELECT a.run, a.rank, a.event_id
        FROM annotations AS a
        SEMI JOIN _ranks AS k ON k.run = a.run AND k.rank = a.rank
        WHERE a.name LIKE 'nccl:%'
    ),
    _suspected_communication AS (
        SELECT g.run, g.rank, count(*) AS kernel_count, min(g.name) AS example
        FROM gpu_ops AS g
        -- Two joins, because a single join with OR would compare each kernel with each call.
        LEFT JOIN _comm_calls AS o ON o.run = g.run AND o.rank = g.rank AND o.event_id = g.op_id
        LEFT JOIN _comm_calls AS a ON a.run = g.run AND a.rank = g.rank AND a.event_id = g.annotation_id
        WHERE g.class_source = 'default' AND (o.event_id IS NOT NULL OR a.event_id IS NOT NULL)
        GROUP BY ALL
    ),
    _host AS (
        SELECT
            c.run,
            c.rank,
            count(*) AS cpu_op_count,
            count(c.input_dims) AS cpu_op_with_shapes_count,
            count(c.call_stack) AS cpu_op_with_stack_count
        FROM cpu_ops AS c
        SEMI JOIN _ranks AS k ON k.run = c.run AND k.rank = c.rank
        GROUP BY ALL
    ),
    _python AS (
        SELECT p.run, p.rank, count(*) AS python_call_count
        FROM python_calls AS p
        SEMI JOIN _ranks AS k ON k.run = p.run AND k.rank = p.rank
        GROUP BY ALL
    ),
    _memory AS (
        SELECT m.run, m.rank, count(*) AS memory_event_count
        FROM memory_events AS m
        SEMI JOIN _ranks AS k ON k.run = m.run AND k.rank = m.rank
        GROUP BY ALL
    ),
    _steps AS (
        SELECT
            s.run,
            s.rank,
            count(*) AS step_count,
            arg_min(s.dur, {'ts': s.ts, 'id': s.event_id}) AS first_step_ns,
            median(s.dur)::BIGINT AS median_step_ns
        FROM steps AS s
        SEMI JOIN _ranks AS k ON k.run = s.run AND k.rank = s.rank
        GROUP BY ALL
    ),
    _summaries AS (
        SELECT DISTINCT c.run, c.rank
        FROM cluster_step_traces AS c
        SEMI JOIN _ranks AS k ON k.run = c.run AND k.rank = c.rank
    ),
    _quarantined AS (
        SELECT
            q.*, k.text_bytes,
            q.is_lost AND lib.is_rest_of_file(q.event_id, q.reason) AS is_end
        FROM quarantine AS q
        JOIN _ranks AS k ON k.run = q.run AND k.rank = q.rank
        -- Damaged dumps and snapshots are in lib.damaged_artifacts, and do not count as damage to the trace.
        WHERE NOT lib.is_of_artifact(q.reason)
    ),
    _flaws AS (
        SELECT
            q.run,
            q.rank,
            count(*) FILTER (q.is_lost) AS lost_count,
            bool_or(q.is_end) AS is_truncated,
            coalesce(bool_or(q.is_lost AND q.byte_count IS NULL), false) AS is_unknown,
            sum(q.byte_count) FILTER (q.is_lost) AS lost_bytes,
            -- They are in event_count.
            count(q.event_id) FILTER (q.is_lost) AS lost_in_place_count,
            coalesce(sum(q.byte_count) FILTER (q.is_lost AND NOT q.is_end), 0) AS lost_inside_bytes,
            coalesce(sum(q.byte_count) FILTER (q.is_end), 0) AS lost_behind_bytes,
            count(*) FILTER (NOT q.is_lost AND q.argument IS NULL) AS repaired_count,
            count(q.argument) AS odd_argument_count,
            arg_min(q.reason, q.byte_offset) FILTER (q.is_lost) AS first_loss,
            min(q.byte_offset) FILTER (q.is_lost) AS first_loss_offset,
            arg_min(q.reason, q.byte_offset) FILTER (NOT q.is_lost AND q.argument IS NULL) AS first_repair,
            arg_min(q.reason || ': ' || coalesce(q.excerpt, ''), (q.event_id, q.argument)) FILTER (q.argument IS NOT NULL) AS first_odd_argument
        FROM _quarantined AS q
        GROUP BY q.run, q.rank
    )
SELECT
    k.run,
    k.rank,
    k.source,
    k.rank_source,
    k.world_size,
    k.backend,
    k.trace_id,
    c.run IS NOT NULL AS is_summary,
    k.base_time_ns IS NOT NULL AS has_base_time,
    k.offset_ns,
    k.dur,
    k.event_count,
    coalesce(h.cpu_op_count, 0) AS cpu_op_count,
    coalesce(h.cpu_op_with_shapes_count, 0) AS cpu_op_with_shapes_count,
    coalesce(h.cpu_op_with_stack_count, 0) AS cpu_op_with_stack_count,
    coalesce(p.python_call_count, 0) AS python_call_count,
    coalesce(m.memory_event_count, 0) AS memory_event_count,
    coalesce(k.profile_memory, false) AS records_memory,
    coalesce(k.record_shapes, false) AS records_shapes,
    coalesce(k.with_stack, false) AS records_stacks,
    coalesce(g.gpu_op_count, 0) AS gpu_op_count,
    coalesce(g.unlinked_gpu_op_count, 0) AS unlinked_gpu_op_count,
    coalesce(g.communication_count, 0) AS communication_count,
    coalesce(g.communication_with_seq_count, 0) AS communication_with_seq_count,
    coalesce(g.communication_with_group_count, 0) AS communication_with_group_count,
    coalesce(g.hccl_count, 0) AS hccl_count,
    coalesce(u.kernel_count, 0) AS suspected_communication_count,
    u.example AS suspected_communication_example,
    coalesce(g.gpu_ns, 0) AS gpu_ns,
    coalesce(g.unmatched_ns, 0) AS unmatched_ns,
    coalesce(g.suspect_count, 0) AS suspect_count,
    coalesce(g.suspect_ns, 0) AS suspect_ns,
    w.device_skew_ns,
    coalesce(s.step_count, 0) AS step_count,
    s.first_step_ns,
    s.median_step_ns,
    coalesce(f.lost_count, 0) AS lost_count,
    CASE WHEN NOT coalesce(f.is_unknown, false) THEN coalesce(f.lost_bytes, 0)::BIGINT END AS lost_bytes,
    -- The lost part is estimated to have as many events a byte as the part that was read.
    CASE
        WHEN NOT coalesce(f.is_unknown, false) THEN
            coalesce(round(f.lost_bytes * ((k.event_count - f.lost_in_place_count) / nullif(k.text_bytes - f.lost_inside_bytes, 0)))::BIGINT, 0)
    END AS lost_event_count,
    CASE
        WHEN NOT coalesce(f.is_unknown, false) THEN
            coalesce(100 * (f.lost_bytes / nullif(k.text_bytes + f.lost_behind_bytes, 0)), 0)
    END AS lost_pct,
    coalesce(f.is_truncated, false) AS is_truncated,
    coalesce(f.repaired_count, 0) AS repaired_count,
    coalesce(f.odd_argument_count, 0) AS odd_argument_count,
    f.first_odd_argument,
    f.first_loss,
    f.first_loss_offset,
    f.first_repair,
    k.missing_columns,
    k.definitions_changed
FROM _ranks AS k
LEFT JOIN _gpu AS g ON g.run = k.run AND g.rank = k.rank
LEFT JOIN _skews AS w ON w.run = k.run AND w.rank = k.rank
LEFT JOIN _suspected_communication AS u ON u.run = k.run AND u.rank = k.rank
LEFT JOIN _host AS h ON h.run = k.run AND h.rank = k.rank
LEFT JOIN _python AS p ON p.run = k.run AND p.rank = k.rank
LEFT JOIN _memory AS m ON m.run = k.run AND m.rank = k.rank
LEFT JOIN _steps AS s ON s.run = k.run AND s.rank = k.rank
LEFT JOIN _flaws AS f ON f.run = k.run AND f.rank = k.rank
LEFT JOIN _summaries AS c ON c.run = k.run AND c.rank = k.rank
