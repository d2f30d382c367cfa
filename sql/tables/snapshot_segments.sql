-- Segments of memory snapshots: memory that PyTorch's allocator reserved from a device at once.
--
-- As they were when the snapshot was written. Blocks of a segment are in snapshot_blocks.
CREATE OR REPLACE VIEW snapshot_segments AS
-- Columns:
--   run              VARCHAR          Run: one capture of one job.
--   rank             INTEGER          Rank of the process whose snapshot it is.
--   segment_id       BIGINT           Position in the snapshot.
--   device           BIGINT           Device number in its process.
--   stream           BIGINT           Device stream that allocates from it, as torch numbers it; 0 is the default one.
--   address          BIGINT [1]       Address of its first byte.
--   bytes            BIGINT [bytes]   Its size.
--   allocated_bytes  BIGINT [bytes]   Blocks that tensors use, as the allocator counts.
--   active_bytes     BIGINT [bytes]   These and blocks that wait for an event of another stream.
--   requested_bytes  BIGINT [bytes]   Requested size of the allocated blocks, before rounding; NULL in early versions.
--   block_count      BIGINT [count]   Its blocks.
--   segment_type     VARCHAR          small (blocks up to 1 MiB) or large.
--   pool_id          VARCHAR          Memory pool: 0,0 is the default one, others are of CUDA graphs and of the user.
--   is_expandable    BOOLEAN          It can grow (expandable_segments:True).
--   stack_id         BIGINT           Stack that reserved it, in snapshot_frames; NULL if unknown.
SELECT
    x.run,
    x.rank,
    x.segment_id,
    x.device,
    x.stream,
    x.address,
    x.bytes,
    x.allocated_bytes,
    x.active_bytes,
    x.requested_bytes,
    x.block_count,
    x.segment_type,
    x.pool_id,
    x.is_expandable,
    x.stack_id
FROM stored.snapshot_segments AS x
