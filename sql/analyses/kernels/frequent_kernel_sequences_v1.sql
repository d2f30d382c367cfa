-- The kernel sequences that calls to an operator launch most frequently.
--
-- On each thread, the calls are the outermost operators, annotations, runtime calls and Python calls whose name
-- contains operator_name. The sequence of a call consists of all operations that its thread launched during the call,
-- ordered by their start on the device. Calls with the same name and sequence share a row. HTA considers only calls at
-- the smallest depth in the trace, so it misses calls to the same operator one level deeper (Q42).
--
-- Title: Frequent kernel sequences
-- Shown: rank, device_sum_ns, occurrence_count, name, kernel_count, host_sum_ns, pattern
-- Status: stable
-- Since: 0.1
-- Reference: HTA get_frequent_cuda_kernel_sequences
-- Needs: operators, annotations or calls named like operator_name (aten:: by default), each of which launches min_pattern_len or more kernels and copies (3 by default)
-- Report: at most 64 ranks
CREATE OR REPLACE MACRO frequent_kernel_sequences_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false,
    -- Substring of the name of the operator, annotation or call.
    operator_name VARCHAR := 'aten::',
    -- Minimum sequence length [kernels, copies and memsets].
    min_pattern_len BIGINT := 3
) AS TABLE
-- Columns:
--   run               VARCHAR         Run name.
--   rank              INTEGER         Rank of the process.
--   sequence_id       BIGINT          Position of the sequence by frequency on the rank; 1 is the most frequent.
--   pattern           VARCHAR         Name of the call, then the names of the operations that it launched, joined by |.
--   name              VARCHAR         Name of the call.
--   kernel_count      BIGINT [count]  Number of operations in the sequence.
--   occurrence_count  BIGINT [count]  Number of calls with this sequence.
--   device_sum_ns     BIGINT [ns]     Total duration of the operations that the calls launched.
--   host_sum_ns       BIGINT [ns]     Total duration of the calls on the host.
--   first_event_id    BIGINT          event_id of the first call.
SELECT
    s.run,
    s.rank,
    row_number() OVER (
        PARTITION BY s.run, s.rank ORDER BY count(*) DESC, s.pattern, s.name, s.kernel_count
    ) AS sequence_id,
    s.pattern,
    s.name,
    s.kernel_count,
    count(*) AS occurrence_count,
    sum(s.device_dur)::BIGINT AS device_sum_ns,
    sum(s.dur)::BIGINT AS host_sum_ns,
    arg_min(s.event_id, (s.ts, s.event_id)) AS first_event_id
FROM lib.kernel_sequences(runs, ranks, steps, include_last_profiler_step, operator_name, min_pattern_len) AS s
GROUP BY s.run, s.rank, s.pattern, s.name, s.kernel_count
ORDER BY s.run, s.rank, sequence_id
