-- Every kernel by name: launches, time, blocks per multiprocessor, occupancy, tensor cores, duration histogram.
--
-- by_operator, by_grid, by_block, by_registers and by_shared_memory split a kernel into one row per launching operator
-- or launch configuration. Mean blocks and occupancy are weighted by duration, over the launches for which they are
-- known (occupancy_known_pct). Use of tensor cores (AMD: matrix cores) is derived from the name (table
-- tensor_core_kernels). Communication kernels are included; copies and memsets are not. The source columns are filled
-- for kernels that torch.compile or AOTInductor generated, if the trace or Inductor's files next to it contain the
-- sources.
--
-- Title: Most expensive kernels
-- Shown: rank, sum_ns, kernel_pct, kernel_count, short_name, op_name, mean_ns, uses_tensor_cores, occupancy_pct
-- Also: top kernels, hot kernels, slowest kernels, kernel time, gpu kernel breakdown, kernels
-- Status: stable
-- Since: 0.1
-- Reference: TensorBoard profiler plugin, kernel view
-- Needs: GPU activity
-- Report: first 2; at most 64 ranks
CREATE OR REPLACE MACRO kernel_table_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false,
    -- Whether each launching operator of a kernel has its own row.
    by_operator BOOLEAN := false,
    -- Whether each grid size has its own row.
    by_grid BOOLEAN := false,
    -- Whether each block size has its own row.
    by_block BOOLEAN := false,
    -- Whether each number of registers per thread has its own row.
    by_registers BOOLEAN := false,
    -- Whether each shared memory size has its own row.
    by_shared_memory BOOLEAN := false
) AS TABLE
-- Columns:
--   run                         VARCHAR         Run name.
--   rank                        INTEGER         Rank of the process.
--   short_name                  VARCHAR         Name without template arguments, parameters and return type; several kernels of the run with the same name also show the arguments in which they differ.
--   name                        VARCHAR         Kernel name.
--   class                       VARCHAR         computation or communication; memory for copies implemented as kernels.
--   op_name                     VARCHAR         Innermost operator that encloses the launch, [graph replay] or [no operator]; NULL without by_operator.
--   grid                        VARCHAR         Grid size in blocks (x, y, z); NULL if not recorded, or without by_grid.
--   block                       VARCHAR         Block size in threads (x, y, z); NULL if not recorded, or without by_block.
--   registers_per_thread_count  BIGINT [count]  Registers per thread; NULL if not recorded, or without by_registers.
--   shared_memory_bytes         BIGINT [bytes]  Shared memory per block; NULL if not recorded, or without by_shared_memory.
--   uses_tensor_cores           BOOLEAN         Whether the kernel runs on tensor cores; NULL if its name does not show it.
--   kernel_count                BIGINT [count]  Number of launches.
--   sum_ns                      BIGINT [ns]     Total duration.
--   mean_ns                     DOUBLE [ns]     Mean duration.
--   min_ns                      BIGINT [ns]     Shortest duration.
--   max_ns                      BIGINT [ns]     Longest duration.
--   std_ns                      DOUBLE [ns]     Sample standard deviation; NULL for a single launch.
--   kernel_pct                  DOUBLE [%]      Share of the rank's total kernel duration; NULL if the total is 0.
--   blocks_per_sm_count         DOUBLE [count]  Mean blocks per multiprocessor; NULL if not recorded.
--   occupancy_pct               DOUBLE [%]      Mean estimated achieved occupancy, as a share of the warps that fit; recorded as an integer, so 0 means below 0.5 %. NULL if not recorded, or if the recorded 0 is no estimate: Kineto has none for kernels with more than 48 KiB of shared memory per block.
--   occupancy_known_pct         DOUBLE [%]      Share of sum_ns whose occupancy is known; NULL if sum_ns is 0.
--   under_1us_count             BIGINT [count]  Launches shorter than 1 us. The six histogram counts sum to kernel_count.
--   from_1us_count              BIGINT [count]  Launches of at least 1 us and less than 10 us.
--   from_10us_count             BIGINT [count]  Launches of at least 10 us and less than 100 us.
--   from_100us_count            BIGINT [count]  Launches of at least 100 us and less than 1 ms.
--   from_1ms_count              BIGINT [count]  Launches of at least 1 ms and less than 10 ms.
--   from_10ms_count             BIGINT [count]  Launches of at least 10 ms.
--   source_file                 VARCHAR         File of the model code that the kernel was compiled from; NULL if unknown, or if there are several.
--   source_line                 BIGINT [1]      Line in source_file; NULL if unknown, or if there are several.
--   source_lines                VARCHAR         All lines as file:line, separated by commas; NULL if unknown.
--   fused_operators             VARCHAR         Nodes of the compiled graph that the kernel computes, named after their operators; NULL if unknown.
--   source_method               VARCHAR         How the source was found: event (a stack in the trace), kernel name or operator name (table compiled_kernels); NULL if unknown.
WITH
    kernels AS MATERIALIZED (
        SELECT
            g.run, g.rank, g.event_id, g.name, g.class, g.op_id, g.dur, g.blocks_per_sm,
            lib.estimated_occupancy_pct(g.occupancy_pct, g.shared_memory_bytes) AS occupancy_pct,
            CASE WHEN by_grid AND g.grid_x IS NOT NULL THEN format('[{}, {}, {}]', g.grid_x, g.grid_y, g.grid_z) END AS grid,
            CASE WHEN by_block AND g.block_x IS NOT NULL THEN format('[{}, {}, {}]', g.block_x, g.block_y, g.block_z) END AS block,
            CASE WHEN by_registers THEN g.registers_per_thread END AS registers_per_thread,
            CASE WHEN by_shared_memory THEN g.shared_memory_bytes END AS shared_memory_bytes
        FROM lib.scoped_gpu_ops(runs, ranks, steps, include_last_profiler_step) AS g
        WHERE g.kind = 'kernel'
    ),
    operators AS (
        SELECT c.run, c.rank, c.event_id, c.name
        FROM cpu_ops AS c
        WHERE by_operator AND lib.is_requested(runs, c.run) AND lib.is_requested(ranks, c.rank)
    ),
    unowned AS (
        SELECT u.run, u.rank, u.event_id, u.label FROM lib.unowned_gpu_ops(runs, ranks) AS u WHERE by_operator
    ),
    summed AS (
        SELECT
            k.run, k.rank, k.name, k.class, coalesce(o.name, u.label) AS op_name, k.grid, k.block, k.registers_per_thread, k.shared_memory_bytes,
            count(*) AS kernel_count,
            sum(k.dur)::BIGINT AS sum_ns,
            avg(k.dur) AS mean_ns,
            min(k.dur) AS min_ns,
            max(k.dur) AS max_ns,
            lib.exact_std(k.dur) AS std_ns,
            lib.weighted_mean(k.blocks_per_sm, k.dur) AS blocks_per_sm,
            lib.weighted_mean(k.occupancy_pct, k.dur) AS occupancy_pct,
            coalesce(sum(k.dur) FILTER (k.occupancy_pct IS NOT NULL), 0) AS known_ns,
            count_if(k.dur < 1000)::BIGINT AS under_1us_count,
            count_if(k.dur >= 1000 AND k.dur < 10000)::BIGINT AS from_1us_count,
            count_if(k.dur >= 10000 AND k.dur < 100000)::BIGINT AS from_10us_count,
            count_if(k.dur >= 100000 AND k.dur < 1000000)::BIGINT AS from_100us_count,
            count_if(k.dur >= 1000000 AND k.dur < 10000000)::BIGINT AS from_1ms_count,
            count_if(k.dur >= 10000000)::BIGINT AS from_10ms_count
        FROM kernels AS k
        LEFT JOIN operators AS o ON o.run = k.run AND o.rank = k.rank AND o.event_id = k.op_id
        LEFT JOIN unowned AS u ON u.run = k.run AND u.rank = k.rank AND u.event_id = k.event_id
        GROUP BY ALL
    ),
    -- Names of the whole run, so that a kernel has one short name in all ranks and steps.
    kernel_names AS (
        SELECT DISTINCT g.run, g.name FROM gpu_ops AS g WHERE lib.is_requested(runs, g.run)
    ),
    short AS (
        SELECT n.* FROM lib.distinct_short_names('kernel_names') AS n
    ),
    tensor AS (
        SELECT t.* FROM lib.tensor_core_names('kernels') AS t
    ),
    source_frames AS MATERIALIZED (
        SELECT f.* FROM lib.kernel_source_frames(runs, ranks) AS f
    ),
    sources AS (
        SELECT k.* FROM lib._kernel_sources('source_frames') AS k
    )
SELECT
    s.run,
    s.rank,
    n.short_name,
    s.name,
    s.class,
    s.op_name,
    s.grid,
    s.block,
    s.registers_per_thread AS registers_per_thread_count,
    s.shared_memory_bytes,
    t.uses_tensor_cores,
    s.kernel_count,
    s.sum_ns,
    s.mean_ns,
    s.min_ns,
    s.max_ns,
    s.std_ns,
    100 * (s.sum_ns / nullif(sum(s.sum_ns) OVER (PARTITION BY s.run, s.rank), 0)) AS kernel_pct,
    s.blocks_per_sm AS blocks_per_sm_count,
    s.occupancy_pct,
    100 * (s.known_ns / nullif(s.sum_ns, 0)) AS occupancy_known_pct,
    s.under_1us_count,
    s.from_1us_count,
    s.from_10us_count,
    s.from_100us_count,
    s.from_1ms_count,
    s.from_10ms_count,
    k.source_file,
    k.source_line,
    k.source_lines,
    k.fused_operators,
    k.source_method
FROM summed AS s
JOIN short AS n ON n.run = s.run AND n.name = s.name
JOIN tensor AS t ON t.name = s.name
LEFT JOIN sources AS k ON k.run = s.run AND k.rank = s.rank AND k.name = s.name
ORDER BY
    s.run, s.rank, s.sum_ns DESC, s.name, s.class, s.op_name, s.grid, s.block, s.registers_per_thread, s.shared_memory_bytes
