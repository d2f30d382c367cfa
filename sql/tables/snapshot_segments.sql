-- Segments of memory snapshots: memory that PyTorch's allocator reserved from a device at once.
--
-- Rows show the state of the segments when the snapshot was written. Blocks of a segment are in snapshot_blocks.
CREATE OR REPLACE VIEW snapshot_segments AS
-- Columns:
--   run              VARCHAR          Run: one capture of one job.
--   rank             INTEGER          Rank of the process that wrote the snapshot.
--   segment_id       BIGINT           Position in the snapshot.
--   device           BIGINT           Device number in the process.
--   stream           BIGINT           Device stream that allocates from the segment, as torch numbers it; 0 is the default stream.
--   address          BIGINT [1]       Address of the first byte.
--   bytes            BIGINT [bytes]   Size of the segment.
--   allocated_bytes  BIGINT [bytes]   Bytes in blocks that tensors use, as counted by the allocator.
--   active_bytes     BIGINT [bytes]   allocated_bytes plus the bytes of blocks that wait for an event on another stream.
--   requested_bytes  BIGINT [bytes]   Requested size of the allocated blocks, before rounding; NULL in early PyTorch versions.
--   block_count      BIGINT [count]   Number of blocks in the segment.
--   segment_type     VARCHAR          small (blocks up to 1 MiB) or large.
--   pool_id          VARCHAR          Memory pool: 0,0 is the default pool; others belong to CUDA graphs or the user.
--   is_expandable    BOOLEAN          Whether the segment can grow (expandable_segments:True).
--   stack_id         BIGINT           Stack that reserved the segment, in snapshot_frames; NULL if unknown.
SELECT x.* EXCLUDE (span)
FROM stored.snapshot_segments AS x
