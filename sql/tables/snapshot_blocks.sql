-- Blocks of the segments of memory snapshots, in use or free.
--
-- Rows show the state of the blocks when the snapshot was written.
CREATE OR REPLACE VIEW snapshot_blocks AS
-- Columns:
--   run              VARCHAR          Run: one capture of one job.
--   rank             INTEGER          Rank of the process that wrote the snapshot.
--   block_id         BIGINT           Position in the snapshot.
--   segment_id       BIGINT           Segment of the block, in snapshot_segments.
--   device           BIGINT           Device number in the process.
--   stream           BIGINT           Device stream of the segment.
--   address          BIGINT [1]       Address of the first byte.
--   bytes            BIGINT [bytes]   Size of the block, rounded by the allocator.
--   requested_bytes  BIGINT [bytes]   Requested size; the block's size if unknown.
--   state            VARCHAR          active_allocated (in use), active_pending_free or active_awaiting_free (freed, but another stream may still use the block), inactive (free).
--   stack_id         BIGINT           Stack that allocated the block, in snapshot_frames; NULL if unknown.
SELECT x.* EXCLUDE (span)
FROM stored.snapshot_blocks AS x
