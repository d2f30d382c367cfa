-- Devices that the traces describe; of a rank that was recorded several times as the first one does.
CREATE OR REPLACE VIEW devices AS
-- Columns:
--   run                                     VARCHAR          Run: one capture of one job.
--   rank                                    INTEGER          Rank of the process.
--   device                                  BIGINT           Device number.
--   name                                    VARCHAR          Model.
--   total_memory_bytes                      BIGINT [bytes]   Memory.
--   compute_major                           INTEGER          Compute capability, major.
--   compute_minor                           INTEGER          Compute capability, minor.
--   multiprocessor_count                    INTEGER [count]  Multiprocessors.
--   warp_size                               INTEGER [count]  Threads of a warp.
--   max_threads_per_block                   INTEGER [count]  Threads of a block, at most.
--   max_threads_per_multiprocessor          INTEGER [count]  Threads of a multiprocessor, at most.
--   shared_memory_per_multiprocessor_bytes  BIGINT [bytes]   Shared memory of a multiprocessor.
--   properties                              VARCHAR          All properties as JSON.
SELECT
    x.run,
    x.rank,
    x.device,
    x.name,
    x.total_memory_bytes,
    x.compute_major,
    x.compute_minor,
    x.multiprocessor_count,
    x.warp_size,
    x.max_threads_per_block,
    x.max_threads_per_multiprocessor,
    x.shared_memory_per_multiprocessor_bytes,
    x.properties
FROM stored.devices AS x
QUALIFY x.span = min(x.span) OVER (PARTITION BY x.run, x.rank, x.device)
