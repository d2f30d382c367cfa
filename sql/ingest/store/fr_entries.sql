-- One row per operation in a Flight Recorder dump.
--
-- profiling_name is `backend:operation`; for sends and receives, the ranks in the group follow: `nccl:send 0->1`,
-- `nccl:recv 1<-0`. Gloo and custom backends do not report states: an operation is retired when it
-- ends, even if it failed. NCCL also retires failed operations, but it marks only finished ones as completed.
SELECT
    j.run,
    j.rank,
    x.record_id,
    x.pg_id,
    x.pg_name,
    x.pg_desc,
    x.collective_seq_id,
    x.p2p_seq_id,
    x.op_id,
    nullif(split_part(x.profiling_name, ':', 1), x.profiling_name) AS backend,
    regexp_extract(x.profiling_name, '^(?:[^:]*:)?(\S+)', 1) AS op,
    TRY_CAST(coalesce(nullif(regexp_extract(x.profiling_name, 'send (\d+)->', 1), ''), regexp_extract(x.profiling_name, 'recv \d+<-(\d+)', 1)) AS INTEGER) AS src_group_rank,
    TRY_CAST(coalesce(nullif(regexp_extract(x.profiling_name, 'send \d+->(\d+)', 1), ''), regexp_extract(x.profiling_name, 'recv (\d+)<-', 1)) AS INTEGER) AS dst_group_rank,
    x.input_sizes,
    x.input_dtypes AS input_types,
    x.output_sizes,
    x.output_dtypes AS output_types,
    x.state,
    x.retired AS is_retired,
    x.state = 'completed' OR (x.retired AND split_part(x.profiling_name, ':', 1) <> 'nccl') AS is_ended,
    nullif(x.time_created_ns, 0) AS created_ns,
    nullif(x.time_discovered_started_ns, 0) AS started_ns,
    nullif(x.time_discovered_completed_ns, 0) AS completed_ns,
    TRY_CAST(round(x.duration_ms * 1000000) AS BIGINT) AS dur,
    TRY_CAST(x.timeout_ms::HUGEINT * 1000000 AS BIGINT) AS timeout_ns,
    x.is_p2p,
    x.stack_id,
    x.thread_id,
    x.thread_name
FROM staged_fr_entries AS x
CROSS JOIN job AS j
ORDER BY x.record_id, x.op_id, x.pg_id
