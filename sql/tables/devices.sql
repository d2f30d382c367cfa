-- Devices as described in the traces; for a rank with several recordings, as described in the first recording.
CREATE OR REPLACE VIEW devices AS
-- Columns:
--   run                                     VARCHAR          Run name: one capture of one job.
--   rank                                    INTEGER          Rank of the process.
--   device                                  BIGINT           Device number.
--   name                                    VARCHAR          Device model.
--   total_memory_bytes                      BIGINT [bytes]   Device memory.
--   compute_major                           INTEGER          Major number of the compute capability.
--   compute_minor                           INTEGER          Minor number of the compute capability.
--   multiprocessor_count                    INTEGER [count]  Number of multiprocessors.
--   warp_size                               INTEGER [count]  Threads per warp.
--   max_threads_per_block                   INTEGER [count]  Maximum threads per block.
--   max_threads_per_multiprocessor          INTEGER [count]  Maximum threads per multiprocessor.
--   shared_memory_per_multiprocessor_bytes  BIGINT [bytes]   Shared memory per multiprocessor.
--   properties                              VARCHAR          All properties as JSON.
SELECT x.* EXCLUDE (span)
FROM stored.devices AS x
QUALIFY x.span = min(x.span) OVER (PARTITION BY x.run, x.rank, x.device)
