-- The last torch.distributed operations that each rank's Flight Recorder recorded before it wrote its dump.
--
-- A dump is a ring buffer: it contains the last 2,000 operations of the process, or as many as TORCH_FR_BUFFER_SIZE
-- specifies. Entries of a group belong to the same collective if they have the same collective_seq_id; sends and
-- receives are matched by order. Times are Unix times on the host's own clock.
CREATE OR REPLACE VIEW fr_entries AS
-- Columns:
--   run                VARCHAR    Run: one capture of one job.
--   rank               INTEGER    Rank of the process that wrote the dump.
--   record_id          BIGINT     Number of the entry in its process, in order of enqueueing.
--   pg_id              BIGINT     Number of the process group in its process.
--   pg_name            VARCHAR    Process group name.
--   pg_desc            VARCHAR    Description of the process group, such as default_pg.
--   collective_seq_id  BIGINT     Number of the collective in its group.
--   p2p_seq_id         BIGINT     Number of the send or receive in its group and process.
--   op_id              BIGINT     Number of the operation in its group, where operations inside a coalesced operation count too.
--   backend            VARCHAR    Communication library: nccl, gloo, ….
--   op                 VARCHAR    Operation: all_reduce, send, ….
--   src_group_rank     INTEGER [1]  Sending rank, numbered within the group; NULL for collectives.
--   dst_group_rank     INTEGER [1]  Receiving rank, numbered within the group; NULL for collectives.
--   input_sizes        VARCHAR    Shapes of the inputs as JSON, such as [[1024]].
--   input_types        VARCHAR    Types of the inputs as JSON, such as ["Float"].
--   output_sizes       VARCHAR    Shapes of the outputs as JSON.
--   output_types       VARCHAR    Types of the outputs as JSON.
--   state              VARCHAR    scheduled, started or completed, as far as the recorder knows.
--   is_retired         BOOLEAN    Whether the watchdog no longer watches the operation, because it ended or failed.
--   is_ended           BOOLEAN    Whether the operation ended; its result is unknown: after a time-out it ends as well.
--   created_ns         BIGINT [ns]  Unix time at which the host enqueued the operation.
--   started_ns         BIGINT [ns]  Unix time at which the recorder noticed that the operation had started; NULL if unnoticed.
--   completed_ns       BIGINT [ns]  Unix time at which the recorder noticed that the operation had completed; NULL if unnoticed.
--   dur                BIGINT [ns]  Duration on the device; NULL unless TORCH_NCCL_ENABLE_TIMING is set.
--   timeout_ns         BIGINT [ns]  Timeout of the operation.
--   is_p2p             BOOLEAN    Whether the operation is a send or a receive.
--   stack_id           BIGINT     Stack of the call, in fr_frames; NULL for dumps without stacks.
--   thread_id          VARCHAR    Calling thread.
--   thread_name        VARCHAR    Name of the calling thread.
SELECT
    x.run,
    x.rank,
    x.record_id,
    x.pg_id,
    x.pg_name,
    x.pg_desc,
    x.collective_seq_id,
    x.p2p_seq_id,
    x.op_id,
    x.backend,
    x.op,
    x.src_group_rank,
    x.dst_group_rank,
    x.input_sizes,
    x.input_types,
    x.output_sizes,
    x.output_types,
    x.state,
    x.is_retired,
    x.is_ended,
    x.created_ns,
    x.started_ns,
    x.completed_ns,
    x.dur,
    x.timeout_ns,
    x.is_p2p,
    x.stack_id,
    x.thread_id,
    x.thread_name
FROM stored.fr_entries AS x
