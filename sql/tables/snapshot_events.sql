-- Events of PyTorch's allocator before a memory snapshot, in order.
--
-- The history is a ring buffer: it contains the last events of the job (max_entries of
-- torch.cuda.memory._record_memory_history).
CREATE OR REPLACE VIEW snapshot_events AS
-- Columns:
--   run                VARCHAR          Run: one capture of one job.
--   rank               INTEGER          Rank of the process that wrote the snapshot.
--   event_id           BIGINT           Position in the snapshot; ascending in time for each device.
--   device             BIGINT           Device number in the process.
--   stream             BIGINT           Device stream, as torch numbers it; 0 is the default stream.
--   action             VARCHAR          alloc, free_requested, free_completed, segment_alloc, segment_free, segment_map, segment_unmap, snapshot, oom, ….
--   time_ns            BIGINT [ns]      Unix time; NULL in early PyTorch versions.
--   address            BIGINT [1]       Address of the block or segment; NULL for oom.
--   bytes              BIGINT [bytes]   Size of the block or segment; for oom, the requested size.
--   device_free_bytes  BIGINT [bytes]   Free memory of the device, as stated by an oom event; NULL for other events.
--   compile_context    VARCHAR          Code that torch.compile was compiling; NULL if there is none.
--   user_metadata      VARCHAR          String set with torch._C._accelerator_setUserMetadata; NULL if there is none.
--   stack_id           BIGINT           Stack of the call, in snapshot_frames; NULL if unknown.
SELECT x.* EXCLUDE (span)
FROM stored.snapshot_events AS x
