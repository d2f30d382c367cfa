-- Device activity: kernels, copies, memsets and device-side synchronization.
CREATE OR REPLACE VIEW gpu_ops AS
-- Columns:
--   run                         VARCHAR         Run name: one capture of one job.
--   rank                        INTEGER         Rank of the process.
--   event_id                    BIGINT          Position of the event in traceEvents, plus rank_spans.first_event_id in later recordings of the rank.
--   span                        INTEGER         Recording of the rank (see rank_spans); 0 if the rank has only one recording.
--   ts                          BIGINT [ns]     Start, relative to the run's first event.
--   dur                         BIGINT [ns]     Recorded duration.
--   is_suspect                  BOOLEAN         Whether the duration is impossible: negative, or so long that the operation ends more than a second after the recording. Analyses exclude such operations.
--   kind                        VARCHAR         Kind of hardware activity: kernel, memcpy, memset or sync.
--   category                    VARCHAR         Kineto category: kernel, gpu_memcpy, gpu_memset or cuda_sync.
--   class                       VARCHAR         Purpose: computation, communication, memory or sync. A sync is not busy time.
--   class_source                VARCHAR         Source of the class: metadata, category, rule or default (no rule matched the name).
--   comm_library                VARCHAR         Library of a communication kernel, such as DeepEP, MoRI or custom all-reduce; NULL for NCCL, RCCL, HCCL and other kernels.
--   comm_role                   VARCHAR         Part of an expert-parallel exchange: dispatch, combine, notify or exchange; NULL otherwise.
--   name                        VARCHAR         Kernel name, or kind and direction of a copy.
--   device                      BIGINT          Device number.
--   stream                      BIGINT          Device stream, also of replays that were exported on a lane for display; NULL for operations without a stream, such as some MTIA transfers.
--   context                     BIGINT          Device context.
--   correlation                 BIGINT          Correlation id, which links a call to the operations that it launched.
--   launch_id                   BIGINT          event_id of the host call that launched the operation; NULL if not in the trace.
--   launch_ts                   BIGINT [ns]     Start of the launching call.
--   launch_dur                  BIGINT [ns]     Duration of the launching call.
--   launch_pid                  BIGINT          Process id of the launching call.
--   launch_tid                  BIGINT          Thread id of the launching call.
--   op_id                       BIGINT          event_id of the innermost operator that encloses the launch.
--   annotation_id               BIGINT          event_id of the innermost user annotation, other than a step, that encloses the launch.
--   module_id                   BIGINT          event_id of the innermost nn.Module call that encloses the launch.
--   bwd_op_id                   BIGINT          event_id of the innermost operator of autograd's backward pass that encloses the launch.
--   stack_id                    BIGINT          stack_id in stacks: the chain of names from the outermost event around the launch to the launch itself.
--   step                        BIGINT          Profiler step of the launch or, without a launch, of the operation's start; NULL outside steps.
--   in_last_step                BOOLEAN         Whether the event starts in or after the rank's last step of a run with two or more steps; excluded by default.
--   grid_x                      BIGINT [count]  Grid size in x [blocks].
--   grid_y                      BIGINT [count]  Grid size in y [blocks].
--   grid_z                      BIGINT [count]  Grid size in z [blocks].
--   block_x                     BIGINT [count]  Block size in x [threads].
--   block_y                     BIGINT [count]  Block size in y [threads].
--   block_z                     BIGINT [count]  Block size in z [threads].
--   registers_per_thread        BIGINT [count]  Registers per thread.
--   shared_memory_bytes         BIGINT [bytes]  Shared memory per block.
--   blocks_per_sm               DOUBLE [count]  Blocks per multiprocessor.
--   warps_per_sm                DOUBLE [count]  Warps per multiprocessor.
--   occupancy_pct               DOUBLE [%]      Estimated achieved occupancy, as recorded: Kineto rounds to an integer, and writes 0 for kernels with more than 48 KiB of shared memory per block.
--   queued_ns                   BIGINT [ns]     Recorded time in the queue; 0 on most devices.
--   bytes                       BIGINT [bytes]  Bytes copied or set.
--   bandwidth_gbps              DOUBLE [GB/s]   Recorded bandwidth; some recorders are off by a constant factor.
--   computed_gbps               DOUBLE [GB/s]   bytes / dur; NULL for a zero duration.
--   graph_id                    BIGINT          Id of the CUDA graph.
--   graph_node_id               BIGINT          Id of the node in the CUDA graph.
--   graph_region                VARCHAR         Name of the region in which the node was captured (mark_kernels of PyTorch 2.14).
--   collective                  VARCHAR         Kind of collective, taken from the metadata if recorded, otherwise from the kernel name.
--   in_elems                    BIGINT [count]  Number of elements sent.
--   out_elems                   BIGINT [count]  Number of elements received.
--   elem_type                   VARCHAR         Element type.
--   group_size                  BIGINT [count]  Number of ranks in the process group.
--   in_split_sizes              VARCHAR         Split sizes of the input as JSON.
--   out_split_sizes             VARCHAR         Split sizes of the output as JSON.
--   pg_name                     VARCHAR         Process group name.
--   pg_desc                     VARCHAR         Process group description.
--   pg_ranks                    VARCHAR         Global ranks of the process group as JSON.
--   seq                         BIGINT          Sequence number of the collective in its process group.
--   src_rank                    BIGINT          Sending rank of a point-to-point operation.
--   dst_rank                    BIGINT          Receiving rank of a point-to-point operation.
--   sync_kind                   VARCHAR         Kind of synchronization.
--   wait_on_stream              BIGINT          Stream that a synchronization waits for.
--   wait_on_record_correlation  BIGINT          Correlation id of the event record that a synchronization waits for.
--   wait_on_event               BIGINT          Event that a synchronization waits for.
--   external_id                 BIGINT          External id, which links host operators and device activity.
--   source_stacks               VARCHAR         Stacks of the model code that was compiled into the kernel, as a JSON list of strings (inductor_trace_handler of PyTorch 2.14).
SELECT
    x.run,
    x.rank,
    x.event_id,
    x.span,
    x.ts + r.offset_ns AS ts,
    x.dur,
    x.is_suspect,
    x.kind,
    CASE x.kind WHEN 'memcpy' THEN 'gpu_memcpy' WHEN 'memset' THEN 'gpu_memset' WHEN 'sync' THEN 'cuda_sync' ELSE x.kind END AS category,
    x.class,
    x.class_source,
    x.comm_library,
    x.comm_role,
    x.name,
    x.device,
    x.stream,
    x.context,
    x.correlation,
    x.launch_id,
    x.launch_ts + r.offset_ns AS launch_ts,
    x.launch_dur,
    x.launch_pid,
    x.launch_tid,
    x.op_id,
    x.annotation_id,
    x.module_id,
    x.bwd_op_id,
    x.stack_id,
    x.step,
    x.in_tail AND r.drops_last_step AS in_last_step,
    x.grid_x,
    x.grid_y,
    x.grid_z,
    x.block_x,
    x.block_y,
    x.block_z,
    x.registers_per_thread,
    x.shared_memory_bytes,
    x.blocks_per_sm,
    x.warps_per_sm,
    x.occupancy_pct,
    x.queued_ns,
    x.bytes,
    x.bandwidth_gbps,
    x.bytes / nullif(x.dur, 0) AS computed_gbps,
    x.graph_id,
    x.graph_node_id,
    x.graph_region,
    x.collective,
    x.in_elems,
    x.out_elems,
    x.elem_type,
    x.group_size,
    x.in_split_sizes,
    x.out_split_sizes,
    x.pg_name,
    x.pg_desc,
    x.pg_ranks,
    x.seq,
    x.src_rank,
    x.dst_rank,
    x.sync_kind,
    x.wait_on_stream,
    x.wait_on_record_correlation,
    x.wait_on_event,
    x.external_id,
    x.source_stacks
FROM stored.gpu_ops AS x
JOIN stored.rank_scope AS r ON r.run = x.run AND r.rank = x.rank AND r.span = x.span
